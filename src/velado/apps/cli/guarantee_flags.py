"""Guarantees on the command line: `--guarantee "t-closeness: t=0.2, distance=ordered"`, and short forms."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from velado.errors import ParameterError

LDiversityFlag = Annotated[
    int | None,
    typer.Option(
        "--l-diversity", help="Distinct values of every sensitive column in each group.", show_default=False
    ),
]
TClosenessFlag = Annotated[
    float | None,
    typer.Option(
        "--t-closeness",
        help="Largest distance of a group's sensitive values from the whole table's.",
        show_default=False,
    ),
]
GuaranteeFlag = Annotated[
    list[str] | None,
    typer.Option(
        "--guarantee",
        "-g",
        metavar="TEXT",
        help='Any guarantee, e.g. "entropy-l-diversity: l=2" or "k-map: k=5"; may be given several times.',
        show_default=False,
    ),
]
PopulationFlag = Annotated[
    Path | None,
    typer.Option(
        "--population",
        metavar="FILE",
        help="Table of everyone the people were drawn from, for k-map and delta-presence.",
        show_default=False,
    ),
]


def by_person(per: str | None, schema: Any) -> bool:
    """Whether k counts people: as asked, or else as soon as the schema names a person column."""
    return per == "person" or (per is None and schema.person is not None)


def asked_for(
    l_diversity: int | None, t_closeness: float | None, texts: list[str] | None, people: bool = False
) -> list[Any]:
    """The guarantees that the flags ask for, beyond the method's own k; *people* is what a further k counts."""
    from velado.anonymize.guarantees import LDiversity, TCloseness

    asked: list[Any] = []
    if l_diversity is not None:
        asked.append(LDiversity(l_diversity))
    if t_closeness is not None:
        asked.append(TCloseness(t_closeness))
    return asked + [guarantee_from(text, people) for text in texts or ()]


def guarantee_from(text: str, people: bool = False) -> Any:
    """`NAME` or `NAME: key=value, key=value` as a guarantee; unknown names and keys suggest the nearest."""
    from velado.anonymize.guarantees import guarantee_named
    from velado.anonymize.parameters import part_from

    name, _, rest = text.partition(":")
    kind = guarantee_named(name.strip())
    entry: dict[str, Any] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise ParameterError(
                f"'{part}' in --guarantee is no setting.",
                "Settings are written key=value.",
                f'Write for example --guarantee "{kind.name}: key=value".',
            )
        entry[key.strip()] = _value(value.strip())
    if people and kind.name == "k-anonymity":
        entry.setdefault("unit", "person")
    return part_from(kind, entry, f"--guarantee {kind.name}")


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
