"""EngineFacts: what is known of a release that an engine wrote; page, manifest and terminal are made from these."""

from __future__ import annotations

from dataclasses import dataclass

from velado.data.taxonomy import ROOT_LABEL
from velado.measures.risk.reidentification import ClassSizes, class_sizes
from velado.release.sources.source_written import SourceRelease
from velado.report.facts import OutputFacts, SourceFacts
from velado.text import listed, say


@dataclass(frozen=True)
class StepTime:
    """One step of a run and how long it took.

    >>> StepTime("writing", 1.5).seconds
    1.5
    """

    name: str
    seconds: float


@dataclass(frozen=True, kw_only=True, repr=False)
class EngineFacts:
    """A release written by an engine, the files it came from and made, and how long each step took.

    >>> from velado.testing.examples import small_lake
    >>> small_lake().facts.smallest
    2
    """

    release: SourceRelease
    source: SourceFacts
    output: OutputFacts
    steps: tuple[StepTime, ...] = ()

    @property
    def quasi(self) -> list[str]:
        """The quasi-identifiers."""
        return [column.name for column in self.release.plan.prepared.data.columns]

    @property
    def before(self) -> ClassSizes:
        """How large the groups of the original quasi-identifiers are."""
        return class_sizes(*self.release.plan.prepared.tuples.sizes)

    @property
    def after(self) -> ClassSizes:
        """How large the groups of the published table are, as counted in it."""
        return class_sizes(self.release.checked.partition.sizes)

    @property
    def smallest(self) -> int:
        """The smallest group of the published table."""
        return self.after.smallest

    @property
    def ends(self) -> dict[str, float | None]:
        """Number columns that are published by intervals, and the step their ends are rounded to, None for true ones."""
        plan = self.release.plan
        return {
            column.name: None if column.rounding is None else column.rounding.step
            for column, published in zip(plan.prepared.data.columns, plan.recoded.columns, strict=True)
            if column.is_numeric
            and published.states_cover
            and any(value is not None and value != ROOT_LABEL for value in published.values)
        }

    @property
    def plan_line(self) -> str:
        """Engine and plan, in a line."""
        prepared = self.release.plan.prepared
        named = {"engine": prepared.source.engine, "tuples": prepared.tuples.distinct}
        if prepared.chosen.name == "compress":
            return say(
                "Engine: {engine}; plan: compress to {tuples:,} distinct tuples, join back, count what was written",
                **named,
            )
        return say(
            "Engine: {engine}; plan: cut first, {rounds:,} rounds of histograms to {parts:,} parts, finish these, "
            "join back, count what was written",
            rounds=prepared.tuples.rounds,
            parts=prepared.tuples.parts,
            **named,
        )

    @property
    def plan_told(self) -> tuple[str, str]:
        """What the engine did, and why this plan was taken."""
        prepared = self.release.plan.prepared
        named = {
            "engine": prepared.source.engine,
            "tuples": prepared.tuples.distinct,
            "rows": prepared.codes.used.rows,
        }
        why = say("Plan {plan}: {why}", plan=prepared.chosen.name, why=prepared.chosen.why)
        if prepared.chosen.name == "compress":
            return (
                say(
                    "{engine} counted {tuples:,} distinct tuples of quasi-identifiers behind {rows:,} rows; the method ran on "
                    "those, what it decided was joined back to the rows, and the written file was counted anew.",
                    **named,
                ),
                why,
            )
        return (
            say(
                "{engine} held {tuples:,} distinct tuples of quasi-identifiers behind {rows:,} rows. The first cuts were taken "
                "from {rounds:,} rounds of histograms; the {parts:,} parts they left were finished a few at a time, each with "
                "the whole table's totals, what was decided was joined back to the rows, and the written file was counted anew.",
                rounds=prepared.tuples.rounds,
                parts=prepared.tuples.parts,
                **named,
            ),
            why,
        )

    @property
    def warnings(self) -> list[str]:
        """What the steward should know before the table leaves."""
        doors = self.release.plan.prepared.judged.side_doors
        open_doors = (door.sentence() for door in doors if not door.accepted)
        return [*self.release.warnings, *open_doors, *self.not_examined]

    @property
    def not_examined(self) -> list[str]:
        """What a release in memory is examined for and one on an engine is not, where this table gives cause to."""
        schema = self.release.plan.prepared.schema
        others = [name for name in self.release.columns if name not in self.quasi]
        if schema.person is None or not others:
            return []
        return [
            say(
                "Whether the rows of one person can be put together again by columns that are published as they are ({columns}) "
                "was not examined: that is looked for in memory alone. A column that hardly changes within a person and differs "
                "between people would do it.",
                columns=listed([f"'{name}'" for name in others]),
            )
        ]

    def facts(self) -> dict[str, object]:
        """All of it as plain values, for `report.json`; not for publication."""
        return {
            "input": self.source,
            "output": self.output,
            **self.release.facts(),
            "groups": {"before": self.before.to_dict(), "after": self.after.to_dict()},
            "behind_side_doors": self.release.behind,
            "steps": self.steps,
        }
