"""Help and errors under VELADO_LANG=pt: no English word is left where the catalogue has one, and numbers are ours."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from velado.apps.cli import run
from velado.apps.cli.main import command
from velado.data.samples import hospital_csv
from velado.text import speaking

# Words of help that stand in no Portuguese sentence; names of flags, settings, files and methods are left out.
ENGLISH = re.compile(
    r"\b(the|of|and|with|which|rows|column|file|folder|required|write|read|table|INTEGER|FLOAT|TEXT|"
    r"FILE|NAME|COLUMN|LIST|OPTIONS|COMMAND|ARGS|RANGE)\b"
)
# What is typed or named as it stands: flags, code, quotations, words between bars, files.
TYPED = re.compile(r"`[^`]*`|--[\w-]+|\"[^\"]*\"|'[^']*'|\S*[|=]\S*|\S+\.\w+|\[table\]")


def commands(group: click.Group, path: str = "velado") -> Iterator[tuple[str, click.Command]]:
    for name, part in group.commands.items():
        yield f"{path} {name}", part
        if isinstance(part, click.Group):
            yield from commands(part, f"{path} {name}")


def test_no_help_has_english_words_or_stray_backslashes() -> None:
    with speaking("pt"):
        whole = command()
        pages = {"velado": whole.get_help(click.Context(whole, info_name="velado"))}
        for path, part in commands(whole):
            pages[path] = part.get_help(click.Context(part, info_name=path))
    assert len(pages) > 25
    left = {path: sorted({*ENGLISH.findall(TYPED.sub(" ", page))}) for path, page in pages.items()}
    assert {path: words for path, words in left.items() if words} == {}
    assert not any("\\[" in page for page in pages.values())


def test_english_help_has_no_backslash_and_plain_words() -> None:
    whole = command()
    page = whole.commands["anonymize"].get_help(click.Context(whole.commands["anonymize"]))
    assert "\\[" not in page and "INTEGER RANGE" not in page and "FLOAT" not in page


def test_an_unknown_command_is_suggested_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_LANG", "pt")
    assert run(["anonymise"]) == 2
    shown = capsys.readouterr().err
    assert shown.count("anonymize") == 1 and "Did you mean" not in shown


def test_a_far_flag_is_not_suggested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.toml").write_text("", "utf-8")
    assert run(["anonymize", "t.csv", "-s", "s.toml", "-m", "mdav", "--cut", "strict"]) == 2
    assert "--quiet" not in capsys.readouterr().err


@pytest.mark.parametrize("language", ["en", "pt"])
def test_the_schema_is_commented_in_the_language_and_valid(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VELADO_LANG", language)
    assert run(["inspect", str(hospital_csv()), "--write", "s.toml", "--quiet"]) == 0
    text = Path("s.toml").read_text("utf-8")
    assert set(tomllib.loads(text)["columns"]) >= {"cpf", "sexo", "idade"}
    remarks = "\n".join(line for line in text.splitlines() if line.startswith("#"))
    words = {"en": "Review every role", "pt": "Revise cada papel"}
    assert words[language] in remarks
    assert (language == "en") == (" different value" in remarks)


def test_methods_are_titled_in_portuguese(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VELADO_LANG", "pt")
    assert run(["methods", "mdav"]) == 0
    shown = capsys.readouterr().out
    assert "Microagregação MDAV" in shown and "quadrático" in shown
