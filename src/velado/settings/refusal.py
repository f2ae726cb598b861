"""The one place where a wrong setting becomes three sentences, whichever door it came through.

A wrong *value* or *type* is a ParameterError through every door. What is wrong with a file as such (an unknown or
missing key, a table that is none, no TOML) is a SchemaError, since the file must be edited; the same mistake in
Python, on the command line or in a form is a ParameterError. The sentences are the same but for the place they name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Real
from pathlib import PurePath
from typing import Any, Literal, get_args

from velado.errors import ParameterError, SchemaError, VeladoError
from velado.settings.declare import Hint, Setting, Spec, is_settings, members_of, origin_of, peeled
from velado.text import Sentence, say

LARGEST = 2**53 - 1
"""The largest whole number a setting takes: every file format and kernel holds it, and twice it, exactly."""

HUGE = 10**300
"""From here on a number is not written out: Python refuses to, and nobody would read it."""

LONGEST = 40
"""So many characters of a wrong value are shown."""


Door = Literal["python", "file", "flag", "form"]


@dataclass(frozen=True)
class Where:
    """Where settings were written: the *door*, the *owner* (a document, or what they are settings of) and a table.

    >>> Where("file", "the recipe").inside("anonymization").of("k")
    "'k' in [anonymization] of the recipe"
    >>> Where("flag").of("max_rows"), Where("python", "l-diversity").of("l"), Where("python").of("k")
    ('--max-rows', "'l' of l-diversity", 'k=')
    """

    door: Door
    owner: str = ""
    path: str = ""
    number: int | None = None

    def of(self, spec: Spec | str) -> str:
        """How the setting is named there."""
        key = spec if isinstance(spec, str) else spec.key
        if self.door == "flag" and not self.owner:
            if isinstance(spec, str):
                return spec if spec.startswith("-") else "--" + spec.replace("_", "-")
            return spec.flag
        key = _cut(key)
        if self.door == "python" and not self.owner and not self.path:
            return say("{key}=", key=key)
        if self.door in ("python", "form"):
            return say("'{key}' of {owner}", key=key, owner=self.here)
        return say("'{key}' {place}", key=key, place=self.within)

    @property
    def here(self) -> str:
        """How the place itself is named."""
        if not self.path:
            return self.owner or say("the command line")
        table = f"[{self.path}]" if self.number is None else f"[[{self.path}]] {self.number}"
        if self.door == "file" and self.owner:
            return say("{table} {document}", table=table, document=_of(self.owner))
        return table

    @property
    def within(self) -> str:
        """The place with its preposition, as a sentence goes on after the setting's name."""
        known = None if self.path else _IN.get(self.owner)
        return known or say("in {place}", place=self.here)

    def inside(self, key: str, number: int | None = None) -> Where:
        """The table *key* in this one, or the entry of that *number* in a list of tables."""
        path = f"{self.path}.{_cut(key)}" if self.path else _cut(key)
        return replace(self, path=path, number=number)

    def refused(self, what: str, why: str, fix: str) -> VeladoError:
        """The error for a document that is wrong as such."""
        return (SchemaError if self.door == "file" else ParameterError)(what, why, fix)


# Whole phrases, since in other languages preposition and article grow together: "na receita", "do estudo".
_IN: Mapping[str, Sentence] = {
    "the recipe": say("in the recipe"),
    "the study": say("in the study"),
    "the job": say("in the job"),
    "the schema": say("in the schema"),
    "the service file": say("in the service file"),
    "the file": say("in the file"),
}
_OF: Mapping[str, Sentence] = {
    "the recipe": say("of the recipe"),
    "the study": say("of the study"),
    "the job": say("of the job"),
    "the schema": say("of the schema"),
    "the service file": say("of the service file"),
    "the file": say("of the file"),
}


def _of(owner: str) -> Sentence:
    return _OF.get(owner) or say("of {owner}", owner=owner)


def _cut(text: str) -> str:
    """Its first characters, without any that would not print."""
    text = "".join(one if one.isprintable() else "?" for one in text[: LONGEST + 1])
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def shown(value: Any) -> str:
    """A setting's own value as an error may show it: as TOML writes it, and not all of it.

    >>> shown(True), shown("ten"), shown([1]), shown(float("nan")), shown(10**400)
    ('true', "'ten'", 'a list', 'nan', 'a number of over 300 digits')
    """
    if value is None:
        return say("none")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) >= HUGE:
        return say("a number of over 300 digits")
    if isinstance(value, str):
        return f"'{_cut(value)}'"
    if isinstance(value, Real | PurePath):
        return _cut(str(value))
    if isinstance(value, list | tuple | set | frozenset):
        return say("a list") if value else say("an empty list")
    if isinstance(value, Mapping):
        return say("a table")
    return say("a value of type {type}", type=_cut(type(value).__name__))


def nearest(word: object, known: Iterable[str]) -> str | None:
    """ "Did you mean", with the known word that is nearest; None where none is near.

    >>> nearest("relaxd", ["strict", "relaxed"]), nearest("acc", ["auc", "accuracy"]), nearest("xyz", ["auc"])
    ("Did you mean 'relaxed'?", "Did you mean 'accuracy'?", None)
    """
    from difflib import get_close_matches

    said, words = str(word)[:200], list(known)
    by_case = {one.lower(): one for one in reversed(words)}
    # The beginning of one word alone is that word, whatever else looks like it: "acc" is no "auc".
    begun = [one for one in words if said and one.lower().startswith(said.lower())]
    near = begun if len(begun) == 1 else get_close_matches(said.lower(), by_case, n=1, cutoff=0.65)
    if not near:
        return None
    return say("Did you mean '{word}'?", word=by_case.get(near[0].lower(), near[0]))


def choices_of(hint: Hint) -> tuple[str, ...]:
    """The words a setting takes, from its Literal or its choices; none where it is free.

    >>> choices_of(Literal["row", "person"] | None)
    ('row', 'person')
    """
    base, setting = peeled(hint)
    if setting.choices:
        return setting.words
    members, _ = members_of(base)
    if members and all(origin_of(peeled(one)[0]) is Literal for one in members):
        return tuple(str(word) for one in members for word in get_args(peeled(one)[0]))
    return ()


def takes(hint: Hint) -> str:
    """What may stand there, in words.

    >>> from typing import Annotated
    >>> takes(Annotated[int | None, Setting(ge=2)]), takes(tuple[Annotated[float, Setting(gt=0, lt=1)], ...])
    ('a whole number, at least 2, or none', 'a list, each entry a number above 0 and below 1')
    """
    base, setting = peeled(hint)
    members, optional = members_of(base)
    words = choices_of(hint)
    if setting.takes:
        said: str = say(setting.takes)
    elif words:
        said = say("one of {words}", words=", ".join(words))
    else:
        said = _kind(members[0], setting)
        for member in members[1:]:
            said = say("{one} or {other}", one=said, other=_kind(member, setting))
        said = _limited(said, setting)
    return say("{value}, or none", value=said) if optional else said


def _kind(hint: Hint, setting: Setting) -> str:
    base = peeled(hint)[0]
    origin, inner = origin_of(base), get_args(base)
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            if setting.parts is not None:
                return say("a list of names, or of tables with a name")
            return say("a list, each entry {entry}", entry=takes(inner[0]))
        return say("a list of {count} entries", count=len(inner))
    if setting.parts is not None:
        return say("a name, or a table with a name")
    if origin is Literal:
        return say("one of {words}", words=", ".join(map(str, inner)))
    if is_settings(base) or base is dict or origin in (dict, Mapping):
        return say("a table")
    said = {
        int: say("a whole number"),
        float: say("a number"),
        str: say("a text"),
        bool: say("true or false"),
        Fraction: say("a number, or a text such as '1/3'"),
    }.get(base)
    if said is not None:
        return said
    if isinstance(base, type) and issubclass(base, PurePath):
        return say("a path")
    return say("a value of type {type}", type=getattr(base, "__name__", str(base)))


def _limited(said: str, setting: Setting) -> str:
    if setting.items:
        said = say("{value}, not empty", value=said) if setting.items == 1 else _many(said, setting)
    low = written(setting.ge if setting.ge is not None else setting.gt)
    high = written(setting.le if setting.le is not None else setting.lt)
    match (setting.ge is not None, setting.gt is not None, setting.le is not None, setting.lt is not None):
        case (True, _, True, _):
            return say("{value} from {low} to {high}", value=said, low=low, high=high)
        case (True, _, _, True):
            return say("{value} from {low}, below {high}", value=said, low=low, high=high)
        case (_, True, True, _):
            return say("{value} above {low}, at most {high}", value=said, low=low, high=high)
        case (_, True, _, True):
            return say("{value} above {low} and below {high}", value=said, low=low, high=high)
        case (True, _, _, _):
            return say("{value}, at least {low}", value=said, low=low)
        case (_, True, _, _):
            return say("{value} above {low}", value=said, low=low)
        case (_, _, True, _):
            return say("{value}, at most {high}", value=said, high=high)
        case (_, _, _, True):
            return say("{value} below {high}", value=said, high=high)
    return said


def _many(said: str, setting: Setting) -> str:
    return say("{value}, at least {items} of them", value=said, items=setting.items)


def written(number: float | None) -> str:
    """A limit as a person would type it: 1e-06, 0.5, 100000.

    >>> written(100_000), written(1.0), written(1e-6)
    ('100000', '1', '1e-06')
    """
    if number is None:
        return ""
    whole = isinstance(number, int) or (number.is_integer() and abs(number) <= LARGEST)
    return str(int(number)) if whole else repr(number)


def no_file(name: str) -> tuple[str, str, str]:
    """The three sentences about a file that is not there, for whichever error its reader raises.

    >>> no_file("age.csv")[0]
    "There is no file 'age.csv'."
    """
    return (
        say("There is no file '{file}'.", file=name),
        say("Nothing was read."),
        say("Check the path and the spelling."),
    )


def unknown_key(key: str, known: Iterable[str], where: Where) -> VeladoError:
    """The error for a key that nothing reads.

    >>> unknown_key("kk", ["k", "seed"], Where("file", "the recipe")).what
    "Unknown key 'kk' in the recipe."
    """
    names = [where.of(one) if where.door == "flag" and not where.owner else one for one in known]
    said = where.of(key)
    return where.refused(
        say("Unknown key {field}.", field=said),
        "A misspelt key would be passed over.",
        nearest(said if where.door == "flag" and not where.owner else key, names)
        or (say("Known keys: {keys}.", keys=", ".join(names)) if names else say("It takes no keys.")),
    )


def missing_key(spec: Spec, where: Where) -> VeladoError:
    """The error for a setting that has no default and was not given.

    >>> from velado.settings import settings, specs
    >>> @settings
    ... class Party:
    ...     name: str
    >>> str(missing_key(specs(Party)["name"], Where("flag")))
    '--name is missing. It has no default. It takes a text. Add it.'
    """
    return where.refused(
        say("{field} is missing.", field=where.of(spec)),
        say("It has no default. It takes {what}.", what=takes(spec.hint)),
        say("Add it, for example {example}.", example=spec.setting.example)
        if spec.setting.example
        else say("Add it."),
    )


def not_a_table(value: Any, where: Where) -> VeladoError:
    """The error for something that is no table where one must be.

    >>> not_a_table(3, Where("file", "the recipe").inside("method")).what
    'No table was found: [method] of the recipe is 3.'
    """
    return where.refused(
        say("No table was found: {place} is {value}.", place=where.here, value=shown(value)),
        say("It takes {what}.", what=say("a table")),
        say("Write its keys and their values."),
    )


def at_flags(refused: ParameterError, flags: Mapping[str, str]) -> ParameterError:
    """The refusal of a value given in Python, told to whoever typed it: the setting is called by its flag.

    *flags* are those of a command by their names without dashes. A part that has a flag of its own
    (`--l-diversity 1`) is called by that; a setting without either keeps its name in Python.

    >>> given = Where("python", "Recipe").of("max_rows")
    >>> refused = ParameterError(say("{field} cannot be 0.", field=given), "It takes more.", "Give 1.")
    >>> refused.what, at_flags(refused, {"max-rows": "--max-rows"}).what
    ("'max_rows' of Recipe cannot be 0.", '--max-rows cannot be 0.')
    """
    what = refused.what
    field = what.parts.get("field") if isinstance(what, Sentence) else None
    if not isinstance(what, Sentence) or not isinstance(field, Sentence):
        return refused
    if "place" in field.parts:  # it stands in a file, or in the text after a flag
        return refused
    names = [str(field.parts.get(part)).replace("_", "-") for part in ("key", "owner")]
    flag = next((flags[name] for name in names if name in flags), None)
    if flag is None:
        return refused
    return ParameterError(Sentence(what.template, {**what.parts, "field": flag}), refused.why, refused.fix)


Wrong = Literal["ge", "gt", "le", "lt", "choice", "finite", "large", "items", "test", "type"]

WRONG: Mapping[str, Wrong] = {
    "greater_than_equal": "ge",
    "greater_than": "gt",
    "less_than_equal": "le",
    "less_than": "lt",
    "literal_error": "choice",
    "finite_number": "finite",
    "too_short": "items",
    "string_too_short": "items",
    "predicate_failed": "test",
}
"""What pydantic's error types mean to us; any other is a wrong type."""


def wrong_value(spec: Spec, value: Any, wrong: Wrong, where: Where, *, entry: bool = False) -> ParameterError:
    """The error for a value that a setting does not take; *entry* says that it is one of its entries.

    >>> from velado.settings import settings, specs
    >>> @settings
    ... class Crowd:
    ...     k: int = 5
    >>> str(wrong_value(specs(Crowd)["k"], "ten", "type", Where("flag")))
    "--k cannot be 'ten'. It takes a whole number. Give a whole number."
    """
    field = where.of(spec)
    seen = say("what was given") if spec.setting.secret else _seen(value) if wrong == "test" else shown(value)
    twice = _twice(value) if wrong == "test" and not entry else None
    if twice is not None and not spec.setting.secret:
        what = say("{field} holds {value} twice.", field=field, value=twice)
    elif entry:
        what = say("{field} cannot hold {value}.", field=field, value=seen)
    else:
        what = say("{field} cannot be {value}.", field=field, value=seen)
    why = say("It takes {what}.", what=takes(spec.hint))
    if wrong == "large":
        why = say("{takes} Whole numbers go up to {largest}.", takes=why, largest=str(LARGEST))
    elif spec.setting.why:
        why = say("{takes} {reason}", takes=why, reason=say(spec.setting.why))
    return ParameterError(what, why, _fix(spec, value, wrong, entry))


def _seen(value: Any) -> str:
    """A short list of numbers and words is written out where its entries are right alone, and wrong together."""
    if isinstance(value, list | tuple) and all(isinstance(one, str | Real) for one in value):
        return _cut(f"[{', '.join(map(shown, value))}]")
    return shown(value)


def _twice(value: Any) -> str | None:
    """The first entry that a list holds a second time, as an error may show it."""
    entries = value if isinstance(value, list | tuple) else ()
    again = next((one for at, one in enumerate(entries) if one in entries[:at]), None)
    return None if again is None else shown(getattr(again, "name", again))


def given_twice(field: str) -> ParameterError:
    """The error for a setting with two values.

    >>> given_twice("-k").what
    '-k is given twice.'
    """
    return ParameterError(
        say("{field} is given twice.", field=field),
        "Which of the two is meant cannot be known.",
        "Leave one of them out.",
    )


_COMMA = re.compile(r"\s*([+-]?[0-9]+),([0-9]+)\s*", re.ASCII)
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.[0-9]+)?\s*", re.ASCII)


def comma_hint(value: object) -> str | None:
    """The advice for a decimal number that was written with a comma; None for anything else.

    >>> comma_hint("0,5"), comma_hint("half")
    ('Write it with a point: 0.5.', None)
    """
    found = _COMMA.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    return say("Write it with a point: {number}.", number=f"{found[1]}.{found[2]}")


def _fix(spec: Spec, value: Any, wrong: Wrong, entry: bool) -> str:
    hint = _entry_hint(spec.hint) if entry else spec.hint
    base, setting = peeled(hint)
    members, _ = members_of(base)
    words = choices_of(hint)
    if words:
        return (nearest(value, words) if isinstance(value, str) else None) or say("Choose one of them.")
    numeric = any(peeled(one)[0] in (int, float, Fraction) for one in members)
    if numeric and (pointed := comma_hint(value)) is not None:
        return pointed
    if wrong == "ge":
        return say("Give {limit} or more.", limit=written(setting.ge))
    if wrong == "gt":
        return say("Give more than {limit}.", limit=written(setting.gt))
    if wrong == "le":
        return say("Give {limit} or less.", limit=written(setting.le))
    if wrong == "lt":
        return say("Give less than {limit}.", limit=written(setting.lt))
    if wrong == "large":
        return say("Give a smaller number.")
    if wrong == "test" and not entry and _twice(value) is not None:
        return say("Remove one of the two.")
    number = next((kind for kind in (float, int) if kind in members), None)
    if wrong == "finite" or (isinstance(value, float) and not math.isfinite(value)):
        return say("Give a finite number.")
    if setting.example:
        return say("Write for example {example}.", example=setting.example)
    if wrong == "items":
        return say("Give at least {items} of them.", items=setting.items)
    if wrong == "type" and number:
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            return say("Give a number, without quotes.")
        return say("Give a whole number.") if number is int else say("Give a number.")
    if wrong == "type" and members[0] is str and isinstance(value, Real):
        return say("Put it in quotes.")
    if spec.setting.parts is not None and (entry or origin_of(members[0]) is not tuple):
        return say("Give one by its name.")
    if wrong == "type" and origin_of(members[0]) is tuple:
        return say("Write it as a list, [a, b].")
    return say("Correct it.")


def _entry_hint(hint: Hint) -> Hint:
    """What the entries of a list are, or the values of a table."""
    members, _ = members_of(peeled(hint)[0])
    base = peeled(members[0])[0]
    inner = get_args(base)
    if origin_of(base) is tuple and inner:
        return inner[0]
    return inner[1] if origin_of(base) in (dict, Mapping) and len(inner) == 2 else hint
