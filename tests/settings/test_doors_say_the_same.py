"""One wrong value of every kind, through Python, TOML, flag and form: the same sentence, but for the place."""

import math
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pytest

from velado.errors import ParameterError, SchemaError, VeladoError
from velado.settings import (
    LARGEST,
    Setting,
    Where,
    describe,
    entry_of,
    flags,
    form,
    from_flags,
    from_form,
    nearest,
    parse_toml,
    part_of,
    read_toml,
    reference,
    settings,
    to_toml,
)

Share = Annotated[float, Setting(ge=0, le=1)]


@settings
class Diverse:
    """A guarantee as it is declared in the release room."""

    name: ClassVar[str] = "diverse"
    l: Annotated[int, Setting("distinct values in each group", ge=2, why="Every group has one value.")] = 2
    column: Annotated[str | None, Setting("one column instead of all")] = None


@settings
class Cuts:
    """A method with a field of each plain kind."""

    name: ClassVar[str] = "cuts"
    cut: Annotated[Literal["strict", "relaxed"], Setting("how equal rows are cut")] = "strict"
    share: Annotated[Share, Setting("share of rows")] = 0.5
    rate: Annotated[float, Setting("above nothing", gt=0, lt=1)] = 0.3
    depth: Annotated[int | None, Setting("cuts at most", ge=1, le=20)] = None
    weighted: Annotated[bool, Setting("count weights")] = False
    recoder: Annotated[str, Setting("how it is published", choices=lambda: ("cover", "mean"))] = "cover"
    sizes: Annotated[tuple[Annotated[int, Setting(ge=2)], ...], Setting("class sizes", items=1)] = (5, 10)


PARTS = (Diverse, Cuts)


@settings(section="limits")
class Bounds:
    """A section."""

    burst: Annotated[int, Setting("requests at once", ge=1, le=1000)] = 30
    wait_seconds: Annotated[float, Setting("time to wait", ge=0.1)] = 10.0


@settings(kw_only=True)
class Document:
    """A file with sections, lists of tables, parts, and a key that is no name in Python."""

    title: str
    ridge: Annotated[Fraction, Setting("penalty", ge=0, key="lambda")] = Fraction(0)
    method: Annotated[Any, Setting("the method", parts=lambda: PARTS, kind="method")] = Cuts()
    promised: Annotated[tuple[Any, ...], Setting("promises", parts=lambda: PARTS, kind="guarantee")] = ()
    limits: Bounds = Bounds()
    sites: tuple[Bounds, ...] = ()
    by_name: dict[str, Bounds] | None = None
    folder: Path | None = None
    url: Annotated[str | None, Setting("where", secret=True, test=lambda url: url.startswith("x:"))] = None
    bounds: Annotated[
        tuple[float, float] | None,
        Setting(
            "domain", test=lambda ends: ends[0] < ends[1], takes="two rising numbers", example="[0, 120]"
        ),
    ] = None


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    return f"[{', '.join(map(_toml, value))}]" if isinstance(value, list) else str(value)


def _python(kind: type[Any], key: str, value: object) -> object:
    return kind(**{key: value})


def _file(kind: type[Any], key: str, value: object) -> object:
    return read_toml(f"{key} = {_toml(value)}", kind, "the recipe")


def _flag(kind: type[Any], key: str, value: object) -> object:
    return from_flags(kind, {f"--{key}": _text(value)})


def _form(kind: type[Any], key: str, value: object) -> object:
    return from_form(kind, {key: _text(value)})


def _text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


DOORS = {
    _python: "'{key}' of {owner}",
    _file: "'{key}' in the recipe",
    _flag: "--{key}",
    _form: "'{key}' of {owner}",
}

WRONG = [
    (Diverse, "l", 1, "cannot be 1. It takes a whole number, at least 2. Every group has one value. Give 2 or more."),
    (Diverse, "l", True, "cannot be true. * Give a whole number."),
    (Diverse, "l", 2.5, "cannot be 2.5. * Give a whole number."),
    (Diverse, "l", "many", "cannot be 'many'. * Give a whole number."),
    (Diverse, "l", math.nan, "cannot be nan. * Give a finite number."),
    (Diverse, "l", LARGEST + 1, f"cannot be 9007199254740992. * Whole numbers go up to {LARGEST}. Give a smaller number."),
    (Diverse, "l", 10**1000, "cannot be a number of over 300 digits. * Give a smaller number."),
    (Cuts, "share", 1.5, "cannot be 1.5. It takes a number from 0 to 1. Give 1 or less."),
    (Cuts, "share", -1, "cannot be -1. It takes a number from 0 to 1. Give 0 or more."),
    (Cuts, "share", math.nan, "cannot be nan. * Give a finite number."),
    (Cuts, "share", math.inf, "cannot be inf. * Give a finite number."),
    (Cuts, "share", True, "cannot be true. * Give a number."),
    (Cuts, "rate", 0, "cannot be 0. It takes a number above 0 and below 1. Give more than 0."),
    (Cuts, "rate", 1, "cannot be 1. It takes a number above 0 and below 1. Give less than 1."),
    (Cuts, "depth", 21, "cannot be 21. It takes a whole number from 1 to 20, or none. Give 20 or less."),
    (Cuts, "depth", 0, "cannot be 0. It takes a whole number from 1 to 20, or none. Give 1 or more."),
    (Cuts, "cut", "relaxd", "cannot be 'relaxd'. It takes one of strict, relaxed. Did you mean 'relaxed'?"),
    (Cuts, "cut", "xyz", "cannot be 'xyz'. It takes one of strict, relaxed. Choose one of them."),
    (Cuts, "recoder", "covr", "cannot be 'covr'. It takes one of cover, mean. Did you mean 'cover'?"),
    (Cuts, "weighted", 3, "cannot be 3. It takes true or false. Correct it."),
    (Cuts, "weighted", "maybe", "cannot be 'maybe'. It takes true or false. Correct it."),
    (Cuts, "sizes", [5, 1], "cannot hold 1. It takes a list, each entry a whole number, at least 2, not empty. Give 2 or more."),
    (Cuts, "sizes", [5, True], "cannot hold true. * Give a whole number."),
    (Cuts, "sizes", [10**20], "cannot hold 100000000000000000000. * Give a smaller number."),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "key", "value", "told"), WRONG, ids=lambda one: str(one)[:30])
def test_a_wrong_value_gets_the_same_sentence_through_every_door(
    kind: type[Any], key: str, value: object, told: str
) -> None:
    heard = set()
    for door, place in DOORS.items():
        with pytest.raises(ParameterError) as refused:
            door(kind, key, value)
        assert type(refused.value) is ParameterError
        named = place.format(key=key, owner=kind.name)
        assert str(refused.value).startswith(named + " ")
        heard.add(str(refused.value).removeprefix(named + " "))
    assert len(heard) == 1
    begin, _, end = told.partition("*")
    sentence = heard.pop()
    assert sentence.startswith(begin.strip()) and sentence.endswith(end.strip() or begin)


@pytest.mark.parametrize(
    ("key", "hint"),
    [("sharee", "Did you mean '{share}'?"), ("qqq", "Known keys: {cut}, {share}, ")],
)
def test_an_unknown_key_is_named_through_every_door(key: str, hint: str) -> None:
    for door, place in DOORS.items():
        with pytest.raises(VeladoError) as refused:
            door(Cuts, key, 1)
        assert type(refused.value) is (SchemaError if door is _file else ParameterError)
        assert refused.value.what == f"Unknown key {place.format(key=key, owner='cuts')}."
        assert refused.value.why == "A misspelt key would be passed over."
        lead = "--" if door is _flag else ""
        assert refused.value.fix.startswith(hint.format(share=f"{lead}share", cut=f"{lead}cut"))


def test_a_text_is_no_number_where_texts_have_quotes() -> None:
    for door in (_python, _file):
        with pytest.raises(ParameterError, match=r"cannot be '5'\. It takes a whole number"):
            door(Diverse, "l", "5")
    assert from_flags(Diverse, {"--l": "5"}) == from_form(Diverse, {"l": "5"}) == Diverse(5)


def test_a_number_is_no_text() -> None:
    for door in (_python, _file):
        with pytest.raises(
            ParameterError, match=r"cannot be 5\. It takes a text, or none\. Put it in quotes\."
        ):
            door(Diverse, "column", 5)
    assert from_flags(Diverse, {"--column": "5"}).column == "5"


def test_right_values_are_brought_into_form() -> None:
    assert Cuts(share=1).share == 1.0 and isinstance(Cuts(share=1).share, float)
    assert Cuts(sizes=[2, 3]).sizes == (2, 3)  # type: ignore[arg-type]
    made = Diverse(np.int64(3))  # type: ignore[arg-type]
    assert made == Diverse(3) and type(made.l) is int
    assert from_flags(Cuts, {"--depth": "none", "--weighted": "yes", "sizes": ["2", "3"]}) == Cuts(
        weighted=True, sizes=(2, 3)
    )
    assert from_flags(Cuts, {"--depth": 4}).depth == 4
    assert from_form(Cuts, {"depth": "", "share": "0.25", "recoder": ""}) == Cuts(share=0.25)


def test_settings_are_frozen_and_keep_what_dataclasses_do() -> None:
    made = Diverse(3)
    with pytest.raises(FrozenInstanceError):
        made.l = 4  # type: ignore[misc]
    assert replace(made, l=4) == Diverse(l=4) and hash(made) == hash(Diverse(3))
    with pytest.raises(ParameterError):
        replace(made, l=0)
    with pytest.raises(TypeError):
        Diverse(2, None, 3)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Diverse(2, l=3)  # type: ignore[misc]


def test_what_fields_must_satisfy_together_is_asked_last() -> None:
    @settings
    class Range:
        least: Share = 0.0
        most: Share = 1.0

        def __post_init__(self) -> None:
            if self.least > self.most:
                raise ParameterError("It is no range.", "The smallest comes first.", "Swap them.")

    assert Range(0.2, 0.4).most == 0.4
    with pytest.raises(ParameterError, match="no range"):
        read_toml("least = 0.5\nmost = 0.2", Range)
    with pytest.raises(ParameterError, match="'most' of Range cannot be 2"):
        Range(3.0 / 4, 2)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("", SchemaError, "'title' in the job is missing."),
        ("title = 1", ParameterError, "'title' in the job cannot be 1."),
        ('title = ""\nlambda = -1', ParameterError, "'lambda' in the job cannot be -1."),
        ('title = ""\nlambda = "1/0"', ParameterError, "'lambda' in the job cannot be '1/0'."),
        ('title = ""\nridge = 1', SchemaError, "Unknown key 'ridge' in the job."),
        ('title = ""\nlimits = 3', ParameterError, "'limits' in the job cannot be 3. It takes a table."),
        ('title = ""\n[limits]\nburst = 0', ParameterError, "'burst' in [limits] of the job cannot be 0."),
        ('title = ""\n[limits]\nbursts = 1', SchemaError, "Unknown key 'bursts' in [limits] of the job."),
        ('title = ""\n[[sites]]\n[[sites]]\nburst = 0', ParameterError, "'burst' in [[sites]] 2 of the job cannot"),
        ('title = ""\n[by_name.a]\nburst = 0', ParameterError, "'burst' in [by_name.a] of the job cannot be 0."),
        ('title = ""\nmethod = "cut"', ParameterError, "There is no method 'cut'. It is one of diverse, cuts. Did"),
        ('title = ""\n[method]\nl = 2', SchemaError, "[method] of the job has no name."),
        ('title = ""\n[method]\nname = "diverse"\nl = 1', ParameterError, "'l' in [method] of the job cannot be 1."),
        ('title = ""\n[[promised]]\nname = "diverse"\nk = 1', SchemaError, "Unknown key 'k' in [[promised]] 1 of"),
        ('title = ""\npromised = 3', ParameterError, "'promised' in the job cannot be 3. It takes a list of names"),
        ('title = ""\nurl = "secret"', ParameterError, "'url' in the job cannot be what was given."),
        ('title = ""\nbounds = [3, 1]', ParameterError, "'bounds' in the job cannot be [3, 1]. It takes two rising"),
        ('title = ""\nbounds = [3]', ParameterError, "'bounds' in the job cannot be a list. It takes two rising"),
        ("title = ", SchemaError, "The TOML of the job is not valid: a value is missing"),
        ("title = " + "9" * 5000, SchemaError, "A number or a nesting in the job is too long."),
        ("title = " + "[" * 5000, SchemaError, " the job is "),
    ],
)  # fmt: skip
def test_a_mistake_in_a_file_is_named_with_its_place(text: str, error: type[VeladoError], told: str) -> None:
    with pytest.raises(VeladoError) as refused:
        read_toml(text, Document, "the job")
    assert type(refused.value) is error
    assert told in str(refused.value)
    assert "secret" not in str(refused.value)


def test_files_that_cannot_be_read_are_schema_errors(tmp_path: Path) -> None:
    marked = tmp_path / "marked.toml"
    marked.write_bytes("\ufefftitle = 'é'".encode())
    assert read_toml(marked, Document).title == "é"
    (tmp_path / "latin.toml").write_bytes("title = 'é'".encode("latin-1"))
    for name, told in (
        ("none.toml", "There is no file"),
        ("latin.toml", "is not UTF-8"),
        (".", "cannot be read"),
    ):
        with pytest.raises(SchemaError, match=told):
            parse_toml(tmp_path / name, "the job")


def test_parts_are_read_and_written() -> None:
    text = 'title = "a"\npromised = "diverse"\nlambda = "1/3"\nfolder = "x/y"\n[method]\nname = "cuts"\ndepth = 3'
    made = read_toml(text, Document)
    assert made.method == Cuts(depth=3) and made.promised == (Diverse(),)
    assert made.ridge == Fraction(1, 3) and made.folder == Path("x/y")
    assert read_toml(to_toml(made), Document) == made
    assert entry_of(Diverse(3)) == {"name": "diverse", "l": 3}
    assert describe(Diverse(3)) == {"name": "diverse", "l": 3, "column": None}
    assert part_of(PARTS, "cuts", "[method]") == Cuts()


def test_long_values_and_keys_are_cut_and_printable() -> None:
    with pytest.raises(ParameterError) as refused:
        Cuts(cut="x\x1b" * 500)  # type: ignore[arg-type]
    assert len(refused.value.what) < 80 and refused.value.what.isprintable()
    with pytest.raises(SchemaError) as unknown:
        read_toml('"' + "k" * 500 + '" = 1', Cuts)
    assert len(unknown.value.what) < 80


def test_flags_forms_and_reference_are_read_off_the_fields() -> None:
    by_name = {one.field: one for one in flags(Cuts)}
    assert list(by_name) == ["cut", "share", "rate", "depth", "weighted", "recoder", "sizes"]
    assert by_name["cut"].choices == ("strict", "relaxed") and by_name["recoder"].choices == ("cover", "mean")
    assert (by_name["depth"].least, by_name["depth"].most, by_name["depth"].optional) == (1, 20, True)
    assert by_name["sizes"].many and by_name["sizes"].kind is int
    assert [one.flag for one in flags(Bounds)] == ["--burst", "--wait-seconds"]
    assert {one.section for one in flags(Bounds)} == {"limits"}
    drawn = form(Document)["properties"]
    assert drawn["limits"]["properties"]["burst"]["maximum"] == 1000
    assert drawn["method"]["enum"] == ["diverse", "cuts"]
    assert form(Document)["required"] == ["title"]
    rows = {one.name: one for one in reference(Document)}
    assert rows["burst"].section == "limits" and rows["wait_seconds"].limits == "a number, at least 0.1"
    assert rows["title"].default == "required" and rows["lambda"].help == "penalty"


def test_a_place_of_its_own_is_named() -> None:
    with pytest.raises(ParameterError, match=r"^'l' in --guarantee diverse cannot be 1"):
        from_flags(Diverse, {"l": "1"}, Where("flag", "--guarantee diverse"))


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("min", ["missing", "kind", "role"], None),
        ("nada", ["das", "mdav", "mondrian"], None),
        ("mondrain", ["das", "mdav", "mondrian"], "mondrian"),
        ("kmember", ["k-member", "gok"], "k-member"),
        ("prog", ["progressive", "gok"], "progressive"),
        ("suppresion", ["suppression", "seed"], "suppression"),
        ("sede", ["seed", "per"], "seed"),
    ],
)
def test_only_a_near_word_is_proposed(word: str, known: list[str], meant: str | None) -> None:
    assert nearest(word, known) == (None if meant is None else f"Did you mean '{meant}'?")
