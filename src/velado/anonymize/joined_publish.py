"""Publishing several tables with the groups of their people, and checking what whoever joins them sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.anonymize.check import Checked, check_published
from velado.anonymize.goal import Goal
from velado.anonymize.guarantees.base import Verdict
from velado.anonymize.guarantees.k_anonymity import KAnonymity
from velado.anonymize.joined_people import Member
from velado.anonymize.pseudonyms import pseudonyms_of
from velado.anonymize.recoded import Recoded
from velado.anonymize.recoders.cover import Cover
from velado.anonymize.release import published_frame
from velado.anonymize.side_doors import SideDoor, refuse_doors
from velado.data.keys import Key
from velado.data.normal import person_texts
from velado.data.partition import GroupCounts, Partition
from velado.errors import GuaranteeNotMet

PSEUDONYM = "pseudonym"
_ROW = "\0row"


@dataclass(frozen=True, repr=False)
class Draft:
    """A table ready to leave: its frame, which rows of the member they are, and the summed loss by column."""

    frame: pl.DataFrame
    rows: npt.NDArray[np.int64]
    losses: tuple[tuple[str, float], ...]


def publish(member: Member, labels: npt.NDArray[np.int32], names: pl.Series | None) -> Draft:
    """Every row with the cover of its person's group, in the order of the content."""
    partition = Partition.of(labels[member.person])
    recoded = Recoded(Cover().publish(member.data, partition), partition.kept, partition)
    frame = published_frame(member.table, recoded)
    if frame.height == 0:
        raise GuaranteeNotMet(
            f"Every row of '{member.name}' was suppressed.",
            "There is nothing to publish of it.",
            "Leave the table out, or lower k.",
        )
    rows = np.flatnonzero(partition.kept)
    if names is not None:
        frame = frame.insert_column(0, names.gather(member.person[rows]).alias(PSEUDONYM))
    columns = frame.columns
    frame = frame.with_columns(pl.Series(_ROW, rows)).sort(columns, nulls_last=True, maintain_order=True)
    losses = tuple(
        (column.name, float(np.where(partition.kept, published.losses(column), 1.0).sum()))
        for column, published in zip(member.data.columns, recoded.columns, strict=True)
    )
    return Draft(frame.select(columns), frame.get_column(_ROW).to_numpy(), losses)


def names_of(members: Sequence[Member], people: int, key: Key | None, namespace: str) -> pl.Series | None:
    """The pseudonym of each person, by code; None without a key."""
    if key is None:
        return None
    texts: npt.NDArray[np.object_] = np.empty(people, dtype=object)
    # By the normal form, as pseudonymize does: however a table spells a person, the pseudonym is the same.
    spelled = person_texts([member.table for member in members])
    for member, own in zip(members, spelled, strict=True):
        texts[member.person] = own.to_numpy()
    return pl.Series(PSEUDONYM, pseudonyms_of(texts.tolist(), key, namespace), dtype=pl.String)


def check_joined(
    members: Sequence[Member], drafts: Mapping[str, Draft], people: int, goal: Goal
) -> tuple[Checked, npt.NDArray[np.int32]]:
    """What whoever joins the published tables sees, one row per person, counted; and each person's group.

    Whether a person is in a table stands beside the visible values: it is visible too.
    """
    present = np.zeros(people, dtype=bool)
    for member in members:
        present[member.person[drafts[member.name].rows]] = True
    codes = np.flatnonzero(present)
    view = pl.DataFrame({_ROW: codes})
    for at, member in enumerate(members):
        draft = drafts[member.name]
        # Numbers keep the columns of two tables apart whatever they are called.
        shown = draft.frame.select(
            pl.Series(_ROW, member.person[draft.rows]),
            pl.lit("yes").alias(f"{at}"),
            *(pl.col(name).cast(pl.String).alias(f"{at} {name}") for name in member.quasi),
        )
        view = view.join(shown.unique(), on=_ROW, how="left", maintain_order="left").with_columns(
            pl.col(f"{at}").fill_null("no")
        )
    if view.height != codes.size:
        raise GuaranteeNotMet(
            "Rows of one person show different values in one published table.",
            "Joined, they would tell more than the group does, so nothing was published.",
            "This is a fault of velado: please report it.",
        )
    names = [name for name in view.columns if name != _ROW]
    counted = [guarantee for guarantee in goal.guarantees if isinstance(guarantee, KAnonymity)]
    checked = check_published(view, names, counted, codes)
    for verdict in checked.verdicts:
        raise_if_broken(verdict, "the joined tables")
    of_person = np.full(people, -1, dtype=np.int32)
    of_person[codes] = checked.partition.labels
    return checked, of_person


def verdicts_on(
    member: Member, rows: npt.NDArray[np.int64], partition: Partition, goal: Goal
) -> tuple[Verdict, ...]:
    """One verdict for each guarantee that can be read in the table, on these groups of its published rows."""
    sensitive = {name: (codes[rows], size) for name, (codes, size) in member.sensitive.items()}
    counts = GroupCounts.of(partition, member.person[rows], sensitive, member.totals, member.shapes)
    return tuple(guarantee.check(counts) for guarantee in member.applicable(goal).guarantees)


def raise_if_broken(verdict: Verdict, where: str) -> None:
    """Nothing, unless the promise fails *where*; then nothing may be published."""
    if not verdict.holds:
        raise GuaranteeNotMet(
            f"In {where}, {verdict.failing_groups} group(s) do not keep {verdict.guarantee}: "
            f"needed {verdict.needed:g} {verdict.unit}, the weakest has {verdict.achieved:g}.",
            "People in them could be picked out by whoever joins the tables, so nothing was published.",
            "Allow --suppression, lower the parameter, or use another method.",
        )


def refuse_own_doors(member: Member, draft: Draft, doors: Sequence[SideDoor], goal: Goal) -> None:
    """No column of a table settles a quasi-identifier of the same table so far that fewer than k people are left."""
    frame = draft.frame.rename({name: f"{member.name}.{name}" for name in draft.frame.columns})
    refuse_doors(
        [door for door in doors if door.columns and set(door.columns) <= set(frame.columns)],
        frame,
        [f"{member.name}.{name}" for name in member.quasi],
        least=max(guarantee.k for guarantee in goal.guarantees if isinstance(guarantee, KAnonymity)),
        sensitive=[f"{member.name}.{column.name}" for column in member.table.schema.sensitive],
        people=member.person[draft.rows].astype(np.int32),
    )


def smallest_by_row_counts(
    members: Sequence[Member], drafts: Mapping[str, Draft], of_person: npt.NDArray[np.int32]
) -> int:
    """The smallest crowd for an attacker who also knows how many rows a person has in each table."""
    codes = [of_person + 1]
    for member in members:
        codes.append(
            np.bincount(member.person[drafts[member.name].rows], minlength=of_person.size).astype(np.int32)
        )
    kept = of_person >= 0
    codes = [column[kept] for column in codes]
    return int(Partition.by_codes(codes, [int(column.max()) + 1 for column in codes]).sizes.min())
