"""What every decision about a side door must do, whichever the registry lists."""

import ast
from pathlib import Path

import pytest

from velado.data.schema import Column
from velado.release.operations import OPERATIONS
from velado.release.side_doors import decisions
from velado.release.side_doors.decisions import DECISIONS, Decision
from velado.report.phrases import operation_told
from velado.text import told

EVERY = pytest.mark.parametrize("decision", DECISIONS.values(), ids=DECISIONS)
COLUMN = Column("cost", kind="numeric")


@EVERY
def test_a_decision_changes_something_and_is_seen_to_stand(decision: Decision) -> None:
    made = decision.edit(COLUMN, "10", "rooms, not people")
    assert (made.column != COLUMN) != (made.operation is not None)
    entries = [] if made.operation is None else [dict(made.operation)]
    assert decision.stands(made.column, entries, "10", "rooms, not people")
    assert not decision.stands(COLUMN, [], "10", "rooms, not people")


@EVERY
def test_a_decision_has_words_in_both_languages(decision: Decision) -> None:
    for words in (decision.wish, decision.done):
        assert told(words, "pt") != told(words, "en")
    assert decision.takes in ("", "step", "reason")
    assert decision.takes == "reason" or not decision.keeps_open  # what stays open has somebody's reason


@EVERY
def test_an_evidence_pack_names_it(decision: Decision) -> None:
    if not decision.trace:
        return
    made = decision.edit(COLUMN, "10", "x")
    if made.operation is not None:
        assert decision.trace == made.operation["name"] in {one.name for one in OPERATIONS}
    else:
        entry = {"role": "other", **made.column.to_dict()}
        assert decision.seen_in(entry) and not decision.seen_in({"role": "other", **COLUMN.to_dict()})
    assert operation_told(decision.trace) == decision.done


@EVERY
def test_a_decision_is_offered_somewhere(decision: Decision) -> None:
    assert decision.fits(["numeric"])
    assert decision.fits([]) is decision.for_the_table


def test_every_file_has_its_line() -> None:
    place = Path(decisions.__path__[0])
    found = {
        node.name
        for module in place.glob("[a-z]*.py")
        for node in ast.parse(module.read_text()).body
        if isinstance(node, ast.ClassDef)
    }
    assert found == {type(one).__name__ for one in DECISIONS.values()}
    assert all(name == one.name for name, one in DECISIONS.items())
