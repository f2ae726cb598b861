"""The minimality attack (Wong et al. 2007), with every possible world enumerated: what it finds today, exactly.

The attacker knows everybody's quasi-identifiers, the method and its settings, and reads the release. He tries every
way in which the published sensitive values could belong to the people, runs the method on each, and keeps the
worlds that would have been published just so. How often a value is somebody's in those worlds is what he believes.

Where groups were chosen with sensitive values in view he learns more than the group's own shares say. That is a
known weakness of the default, stated in `docs/explanation/promises.md`, in the report and on the terminal: these
tests measure it, and fail when the measure changes. Where groups were chosen by quasi-identifiers alone he learns
nothing beyond the shares. With `--blind` that is so under promises about sensitive values too; of people who were left
out he learns that their group broke the promise, and no more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product

import polars as pl
import pytest

from velado.data.schema import Schema
from velado.errors import GuaranteeNotMet
from velado.release.anonymize import anonymize
from velado.release.guarantees import BetaLikeness, EntropyLDiversity, Guarantee, LDiversity, TCloseness
from velado.release.methods import GFKMC, MDAV, FullDomain, KMember, Mondrian, Progressive, TopDownGreedy
from velado.release.methods._method import Method
from velado.report.terminal import warning_lines
from velado.study.run import publish
from velado.text import told

AGES = (30, 30, 40, 40, 50, 50)
SCHEMA = Schema.from_dict(
    {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "illness": {"role": "sensitive", "side_door": "accept"},
        }
    }
)

Shown = tuple[tuple[str, str], ...]


def published(
    world: Sequence[str], method: Method, guarantees: Sequence[Guarantee], k: int = 2
) -> Shown | None:
    """What is published of a world, as rows without an order; None where the run is refused."""
    return _published(tuple(world), method, tuple(guarantees), k)


@cache  # whoever reasons about the method visits each world again and again
def _published(
    world: tuple[str, ...], method: Method, guarantees: tuple[Guarantee, ...], k: int
) -> Shown | None:
    frame = pl.DataFrame({"age": [str(age) for age in AGES], "illness": list(world)})
    try:
        made = anonymize(frame, SCHEMA, method, guarantees, k=k)
    except GuaranteeNotMet:
        return None
    shown = made.frame.select(pl.col("age").cast(pl.String), "illness")
    return tuple(sorted(shown.iter_rows()))


def beliefs(
    shown: Shown, method: Method, guarantees: Sequence[Guarantee], k: int = 2
) -> tuple[dict[tuple[int, str], Fraction], int]:
    """The posterior of (age, illness) for who knows the method, and how many worlds are left to him."""
    illnesses = [illness for _, illness in shown]
    worlds = [w for w in set(permutations(illnesses)) if published(w, method, guarantees, k) == shown]
    counts: Counter[tuple[int, str]] = Counter()
    for world in worlds:
        counts.update(zip(AGES, world, strict=True))
    people = Counter(AGES)
    return {
        (age, illness): Fraction(counts[age, illness], people[age] * len(worlds))
        for age in people
        for illness in set(illnesses)
    }, len(worlds)


def shares(shown: Shown) -> dict[tuple[int, str], Fraction]:
    """What the promise admits: the share of each illness in the published group of each age.

    Where the two people of an age are in two groups, either may be meant: the mean of both.
    """
    groups = {text for text, _ in shown}
    of_age = {age: [text for text in groups if covers(text, age)] for age in set(AGES)}
    sizes, counts = Counter(text for text, _ in shown), Counter(shown)
    return {
        (age, illness): sum(Fraction(counts[text, illness], sizes[text]) for text in texts) / len(texts)
        for age, texts in of_age.items()
        for illness in {illness for _, illness in shown}
    }


def covers(text: str, age: int) -> bool:
    ends = text.strip("[]").split("..")
    return int(float(ends[0])) <= age <= int(float(ends[-1]))


def test_who_knows_the_method_is_certain_of_both_fifty_year_olds() -> None:
    method, asked = Progressive(), [LDiversity(2)]
    shown = published(["flu", "hiv", "flu", "hiv", "flu", "flu"], method, asked)
    assert shown is not None
    assert Counter(shown) == {
        ("30", "flu"): 1,
        ("30", "hiv"): 1,
        ("[40..50]", "flu"): 3,
        ("[40..50]", "hiv"): 1,
    }
    found, worlds = beliefs(shown, method, asked)
    assert worlds == 4  # of the 8 that fit the published groups
    admitted = shares(shown)
    assert admitted[50, "flu"] == Fraction(3, 4) and found[50, "flu"] == 1
    assert admitted[40, "hiv"] == Fraction(1, 4) and found[40, "hiv"] == Fraction(1, 2)


@pytest.mark.parametrize(
    "promise",
    [LDiversity(2), pytest.param(EntropyLDiversity(2), marks=pytest.mark.slow)],
    ids=lambda g: g.name,
)
def test_a_value_admitted_with_one_half_is_known_for_certain(promise) -> None:
    """No value has more than 1/l = 1/2 of its group, and yet both fifty-year-olds' diagnosis is known."""
    method = Progressive()
    shown = published(["flu", "gout", "flu", "gout", "hiv", "hiv"], method, [promise])
    assert shown is not None
    admitted = shares(shown)
    assert max(admitted.values()) == Fraction(1, 2)
    found, worlds = beliefs(shown, method, [promise])
    assert found[50, "hiv"] == 1 > admitted[50, "hiv"] == Fraction(1, 2)
    assert worlds == 4


@pytest.mark.parametrize(
    ("method", "leaking", "highest"),
    [(Progressive(), 4, Fraction(1, 4)), (Mondrian(), 7, Fraction(4, 21))],
    ids=["progressive", "mondrian"],
)
def test_how_many_of_the_fifteen_worlds_tell_more_than_their_shares(method, leaking, highest) -> None:
    """Two of six people have hiv: in `leaking` of the 15 worlds a belief exceeds the share, by `highest` at most."""
    asked = [LDiversity(2)]
    worlds = set(permutations(["flu"] * 4 + ["hiv"] * 2))
    seen = Counter(published(world, method, asked) for world in worlds)
    assert len(worlds) == sum(seen.values()) == 15 and None not in seen
    excess = {
        shown: max(belief - shares(shown)[key] for key, belief in beliefs(shown, method, asked)[0].items())
        for shown in seen
        if shown is not None
    }
    assert sum(seen[shown] for shown, more in excess.items() if more > 0) == leaking
    assert max(excess.values()) == highest


@pytest.mark.parametrize(
    ("method", "k"),
    [
        (Progressive(), 2),
        pytest.param(Mondrian(), 3, marks=pytest.mark.slow),
        *(
            pytest.param(kind(), k, marks=pytest.mark.slow)
            for kind, k in (
                *((kind, 2) for kind in (Mondrian, FullDomain, KMember, MDAV, TopDownGreedy, GFKMC)),
                (Progressive, 3),
            )
        ),
    ],
    ids=lambda part: getattr(part, "name", part),
)
def test_groups_chosen_by_quasi_identifiers_alone_tell_no_more_than_their_shares(method, k) -> None:
    for world in (["flu", "hiv", "flu", "hiv", "flu", "flu"], ["flu", "gout", "flu", "gout", "hiv", "hiv"]):
        shown = published(world, method, [], k)
        assert shown is not None
        found, _ = beliefs(shown, method, [], k)
        assert found == shares(shown)


# Blind: the attacker knows all ages, sees who is missing, and has a belief about each person before (a *prior*).

World = tuple[str, ...]


@cache
def blind_release(
    ages: tuple[int, ...], world: World, method: Method, promise: Guarantee, k: int
) -> tuple[Shown, tuple[str | None, ...]] | None:
    """What is published of a world blindly, and, for the tests alone, the published text of each person."""
    frame = pl.DataFrame({"age": [str(age) for age in ages], "illness": list(world)})
    try:
        made = anonymize(frame, SCHEMA, method, [promise], k=k, suppression=0.999, blind=True)
    except GuaranteeNotMet:
        return None
    shown = made.aligned.select(pl.col("age").cast(pl.String), "illness")
    texts = iter(shown["age"])
    return tuple(sorted(shown.iter_rows())), tuple(next(texts) if kept else None for kept in made.kept)


def blind_beliefs(
    ages: tuple[int, ...], method: Method, promise: Guarantee, k: int, prior: dict[str, Fraction]
) -> list[tuple[Shown, tuple[str | None, ...], list[dict[str, Fraction]]]]:
    """For everything that can be published: what it is, where each person is, what is believed of each person.

    All worlds are tried, each as likely as the prior says. He is even told which row is whose, illness apart.
    """
    of_shown: dict[object, list[tuple[World, Fraction]]] = {}
    for world in product(prior, repeat=len(ages)):
        likely = Fraction(1)
        for illness in world:
            likely *= prior[illness]
        of_shown.setdefault(blind_release(ages, world, method, promise, k), []).append((world, likely))
    out = []
    for seen, worlds in of_shown.items():
        if seen is None:
            continue
        whole = sum(likely for _, likely in worlds)
        beliefs = [
            {v: sum((w for world, w in worlds if world[who] == v), Fraction(0)) / whole for v in prior}
            for who in range(len(ages))
        ]
        out.append((*seen, beliefs))
    return out


HALF = {"flu": Fraction(1, 2), "hiv": Fraction(1, 2)}
RARE = {"flu": Fraction(9, 10), "hiv": Fraction(1, 10)}


@pytest.mark.parametrize("prior", [HALF, RARE], ids=["half", "rare"])
@pytest.mark.parametrize(
    ("method", "promise", "ages", "k"),
    [
        (Mondrian(), LDiversity(2), AGES, 2),
        (Mondrian(), TCloseness(0.3), AGES, 2),
        (Progressive("fast"), LDiversity(2), AGES, 2),
        (MDAV(), BetaLikeness(0.5), (20, 21, 30, 31, 40, 41), 2),
        (KMember(), LDiversity(2), (20, 21, 23, 30, 31, 60), 3),
        pytest.param(
            Progressive("fast"), TCloseness(0.3), (20, 21, 22, 40, 50, 60), 2, marks=pytest.mark.slow
        ),
        pytest.param(GFKMC(), EntropyLDiversity(2), AGES, 2, marks=pytest.mark.slow),
        pytest.param(TopDownGreedy(), TCloseness(0.2), (20, 20, 21, 35, 36, 60), 2, marks=pytest.mark.slow),
    ],
    ids=lambda part: getattr(part, "name", None),
)
def test_blind_groups_tell_of_nobody_in_them_more_than_the_shares(method, promise, ages, k, prior) -> None:
    """In every world, for every person who is published, whatever the prior was."""
    found = blind_beliefs(ages, method, promise, k, prior)
    assert len(found) > 2 and any(None in places for _, places, _ in found)
    for shown, places, beliefs in found:
        sizes, counts = Counter(text for text, _ in shown), Counter(shown)
        for place, belief in zip(places, beliefs, strict=True):
            if place is None:
                continue
            assert belief == {v: Fraction(counts[place, v], sizes[place]) for v in prior}


def test_blind_groups_are_the_same_in_every_world() -> None:
    """What a person is published as does not depend on anybody's illness: only whether the group leaves does."""
    texts = [set[str]() for _ in AGES]
    for world in product(HALF, repeat=len(AGES)):
        made = blind_release(AGES, world, Mondrian(), LDiversity(2), 2)
        for who, text in enumerate(made[1] if made else ()):
            texts[who] |= {text} - {None}
    assert all(len(seen) == 1 for seen in texts)


def test_of_people_who_were_left_out_it_is_known_that_their_group_broke_the_promise() -> None:
    """The limit of the blind mode, exactly: two of an age are missing, so they have the same illness.

    With 1 in 10 ill, a fifty-year-old had flu with 9/10 before and with 81/82 now: what is frequent is believed more.
    """
    found = blind_beliefs(AGES, Mondrian(), LDiversity(2), 2, RARE)
    for _, places, beliefs in found:
        for place, belief in zip(places, beliefs, strict=True):
            if place is None:
                assert belief["flu"] == Fraction(81, 82) > RARE["flu"]
    told = [
        (world, blind_release(AGES, world, Mondrian(), LDiversity(2), 2)) for world in product(RARE, repeat=6)
    ]
    for world, made in told:
        if made is not None and made[1][4] is None:
            assert world[4] == world[5]


def test_the_six_whose_groups_told_of_them_are_told_of_no_more_when_made_blindly() -> None:
    world = ("flu", "hiv", "flu", "hiv", "flu", "flu")
    shown, places = blind_release(AGES, world, Progressive("fast"), LDiversity(2), 2) or ((), ())
    assert Counter(shown) == {("30", "flu"): 1, ("30", "hiv"): 1, ("40", "flu"): 1, ("40", "hiv"): 1}
    assert places == ("30", "30", "40", "40", None, None)


@pytest.mark.parametrize(
    ("language", "in_report", "on_terminal"),
    [
        ("en", "Knowing the method (minimality)", "with the sensitive values in view"),
        ("pt", "Conhecer o método (minimalidade)", "à vista dos valores sensíveis"),
    ],
)
def test_report_and_terminal_say_so_where_sensitive_values_chose_the_groups(
    tmp_path, language, in_report, on_terminal
) -> None:
    frame = pl.DataFrame(
        {"age": [str(20 + n) for n in range(12)], "illness": [f"ill {n % 3}" for n in range(12)]}
    )
    for name, asked in (("with", [LDiversity(2)]), ("without", [])):
        made = publish(
            frame,
            SCHEMA,
            Mondrian(),
            asked,
            out=tmp_path / f"{language}-{name}",
            language=language,
            reports=("md",),
            k=3,
        )
        said = " ".join(told(line, language) for line in warning_lines(made.facts))
        assert (in_report in (made.private / "report.md").read_text("utf-8")) is bool(asked)
        assert (on_terminal in said) is bool(asked)
