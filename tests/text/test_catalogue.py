"""The catalogue fits the sentences of the package, and the checks see what does not fit."""

import ast
import importlib.util
import re
import string
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from velado.learning.flower.agreement import FederationRecipe
from velado.learning.regression.job import Job
from velado.settings.declare import is_settings, members_of, peeled, specs
from velado.study.evaluate.study_settings import StudyRecipe
from velado.study.recipe import Recipe
from velado.text.languages import PLACES, catalogue, read

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "velado"

# Sentences that still wait for a translation. This number may only fall.
WAITING = 0


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec and spec.loader
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    pytest.importorskip("babel")
    return loaded("make_catalogue")


def test_the_catalogue_fits_the_package(maker: ModuleType) -> None:
    wrong = maker.faults(PLACES["pt"].read_text("utf-8"), maker.sentences())
    assert len(wrong.missing) <= WAITING
    assert (wrong.stale, wrong.fuzzy, wrong.mismatched, wrong.unread) == ([], [], [], [])


def test_the_committed_file_is_in_the_form_the_script_writes(maker: ModuleType) -> None:
    text = PLACES["pt"].read_text("utf-8")
    assert maker.as_file(maker.translations(text)) == text


def po(*entries: str) -> str:
    return 'msgid ""\nmsgstr "Content-Type: text/plain; charset=utf-8\\n"\n\n' + "\n".join(entries)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        ('msgid "a {x:,}"\nmsgstr ""\n', "missing"),
        ('msgid "a {x:,}"\nmsgstr "um {x:,}"\n\nmsgid "gone"\nmsgstr "foi"\n', "stale"),
        ('#, fuzzy\nmsgid "a {x:,}"\nmsgstr "um {x:,}"\n', "fuzzy"),
        ('msgid "a {x:,}"\nmsgstr "um {y:,}"\n', "mismatched"),
        ('msgid "a {x:,}"\nmsgstr "um {x}"\n', "mismatched"),
        ('msgid "a {x:,}"\nmsgstr "um"\n', "mismatched"),
        ('msgid   "a {x:,}"\nmsgstr "um {x:,}"\n', "unread"),
    ],
)
def test_each_fault_is_seen(maker: ModuleType, entry: str, fault: str) -> None:
    wrong = vars(maker.faults(po(entry), {"a {x:,}"}))
    assert [kind for kind, texts in wrong.items() if texts] == [fault]


def test_translations_survive_an_update_and_stale_ones_do_not(maker: ModuleType) -> None:
    entries = {'say "a"\n\\ {x}': 'diga "a"\n\\ {x}', ("{n} row", "{n} rows"): ("{n} linha", "{n} linhas")}
    text = maker.as_file(entries)
    assert maker.translations(text) == entries
    ours = read(text)
    assert dict(ours.single) == {'say "a"\n\\ {x}': 'diga "a"\n\\ {x}'}
    assert dict(ours.plural) == {"{n} row": ("{n} linha", "{n} linhas")}
    assert vars(maker.faults(text, set(entries))) == {
        "missing": [], "stale": [], "fuzzy": [], "mismatched": [], "unread": [],
    }  # fmt: skip


def test_wrapped_lines_of_other_editors_are_read() -> None:
    assert read(po('msgid ""\n"a "\n"b"\nmsgstr ""\n"c "\n"d"\n')).single == {"a b": "c d"}


SOURCE = '''
from velado.text import say, say_n as counted
from velado.errors import TableError
class Odd(TableError): ...
def one(rows):
    raise TableError("What.", "Why." if rows else "Or.", fix="Fix.")
    raise Odd(say("{rows} rows", rows=rows), f"not {rows}", "Odd" " fix.", "no fourth")
    counted("{n} row", "{n} rows", rows)
    unknown("not this")
    Option("--x", help="Help.")
    field(metadata={"help": "Field."})
@app.command("x")
def two():
    """Does it.

    Well.
    """
'''


def test_sentences_are_found_in_python(maker: ModuleType) -> None:
    tree = ast.parse(SOURCE)
    errors = maker.error_names([tree, ast.parse("class TableError(VeladoError): ...")])
    assert set(maker.in_module(tree, errors)) == {
        "What.", "Why.", "Or.", "Fix.", "{rows} rows", "Odd fix.", ("{n} row", "{n} rows"),
        "Help.", "Field.", "Does it.\n\nWell.",
    }  # fmt: skip
    # A `say` that is not ours says nothing.
    assert not set(maker.in_module(ast.parse("from x import say\nsay('a', 'b')"), errors))


def test_sentences_are_found_in_pages(maker: ModuleType) -> None:
    page = b"""{{ say("{rows} rows", rows=rows) }} {{ say_n("{n} row", "{n} rows", 2) }} {{ other("no") }}"""
    assert set(maker.in_page(page)) == {"{rows} rows", ("{n} row", "{n} rows")}


def misfits(tree: ast.Module) -> list[str]:
    """Calls of velado.text's say whose parts are not its template's, or whose template is made up on the way."""
    names = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("velado.text")
        for alias in node.names
        if alias.name in {"say", "say_n"}
    }
    found = []
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names):
            continue
        counted = names[node.func.id] == "say_n"
        first = node.args[: 2 if counted else 1]
        while choices := [part for part in first if isinstance(part, ast.IfExp)]:
            first = [part for part in first if part not in choices]
            first += [branch for part in choices for branch in (part.body, part.orelse)]
        templates = [part.value for part in first if isinstance(part, ast.Constant)]
        if len(templates) != len(first):
            found.append(f"{node.lineno}: no literal")
            continue
        given = {str(word.arg) for word in node.keywords} | ({"n"} if counted else set())
        used: set[str] = set()
        for template in templates if given else ():
            for _, name, spec, _ in string.Formatter().parse(template):
                used |= {name} if name is not None else set()
                used |= set(re.findall(r"{(\w+)}", spec or ""))
        spread = "None" in given  # **parts, which the template is held against when it is said
        if not spread and (used - {"n"} != given - {"n"} or not used <= given):
            found.append(f"{node.lineno}: {sorted(used ^ given)}")
    return found


# These say again, with parts, a sentence that stands elsewhere as a literal: a table of verbs, a setting's help.
SAID_ELSEWHERE = {
    "apps/cli/commands/_methods.py",
    "learning/flower/_server.py",
    "learning/protocols/who_learns_what.py",
    "query/answer.py",
    "settings/refusal.py",
    "study/evaluate/_advice.py",
    "study/evaluate/_amounts.py",
}


def test_every_call_gives_its_template_the_parts_it_names() -> None:
    found = {}
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        wrong = misfits(ast.parse(path.read_text("utf-8")))
        wrong = [one for one in wrong if name not in SAID_ELSEWHERE or "no literal" not in one]
        if wrong:
            found[name] = wrong
    assert not found


@pytest.mark.parametrize(
    "call",
    ["say('{a}', b=1)", "say('{a}', a=1, b=1)", "say(text)", "say('{a:{b}}', a=1)", "say_n('{m}', '{n}', 2)"],
)
def test_a_call_that_does_not_fit_is_seen(call: str) -> None:
    assert misfits(ast.parse(f"from velado.text import say, say_n\n{call}"))


@pytest.mark.parametrize(
    "document", [Recipe, StudyRecipe, FederationRecipe, Job], ids=lambda one: one.__name__
)
def test_what_a_setting_says_of_itself_is_in_the_catalogue(document: type[object]) -> None:
    waiting, seen = [document], set()
    while waiting:
        for spec in specs(waiting.pop()).values():
            inner = members_of(peeled(spec.hint)[0])[0][0]
            waiting += [inner] if is_settings(inner) else []
            said = spec.setting
            texts = (getattr(text, "template", text) for text in (said.help, said.takes, said.why))
            seen |= {text for text in texts if text}
    assert len(seen) > 5
    assert not [text for text in seen if text not in catalogue("pt").single]


def test_three_thousand_entries_are_read_quickly() -> None:
    text = po(
        *(
            f'msgid "The {{x}} of {i}: \\"a\\" {"word " * 15}"\nmsgstr "O {{x}} {"fala " * 20}"\n'
            for i in range(3000)
        )
    )
    times = []
    for _ in range(5):
        begin = time.process_time()
        assert len(read(text).single) == 3000
        times.append(time.process_time() - begin)
    # Alone it takes 7 ms; the bound leaves room for a slow machine, not for a reader that goes line by line.
    assert min(times) < 0.1


def test_nothing_is_read_and_no_babel_imported_before_portuguese_is_spoken() -> None:
    script = """
import sys
from velado.text import say, told
from velado.text.languages import catalogue
told(say("a"), "en")
assert catalogue.cache_info().currsize == 0
told(say("a"), "pt")
assert catalogue.cache_info().currsize == 1
assert not [name for name in sys.modules if name.split(".")[0] == "babel"]
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert catalogue("en").single == {}
