"""The page that leaves with several tables about the same people: what holds for whoever joins them, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping

from velado.release.joined import JoinedRelease
from velado.report.blocks import (
    Block,
    Bullets,
    Figure,
    Notice,
    Page,
    Section,
    State,
    VerdictCard,
    section,
    table,
)
from velado.report.phrases import phrase, verdict_sentence
from velado.text import NOTHING, count, join, listed, say, share


def joined_page(release: JoinedRelease, sha256: Mapping[str, str]) -> Page:
    """The page of a joined release; *sha256* are the digests of its files, by the name of the table.

    Like `public_page` it says nothing that the published tables do not show, but the loss, rounded.

    >>> from velado.release.joined import anonymize_joined
    >>> from velado.release.methods import Mondrian
    >>> from velado.testing.examples import table
    >>> ages = table(person=["a", "b"], age=[20, 30])
    >>> page = joined_page(anonymize_joined({"one": ages, "two": ages}, Mondrian(), k=2), {"one": "f0", "two": "f1"})
    >>> page.verdict.headline, [part.name for part in page.sections]
    ('Whoever joins the tables still finds at least 2 people who show the same in all of them.', ['promise', 'columns-one', 'columns-two', 'limits'])
    """
    crowd = release.verdicts[0]
    open_doors = [door for door in release.side_doors if not door.accepted]
    state: State = "warning" if release.promise == "as in the paper" else "caution" if open_doors else "good"
    labels = {
        "good": say("The promise holds"),
        "caution": say("Decide with care"),
        "warning": say("Do not publish"),
    }
    lost = say(
        "It costs {loss} of the detail in the quasi-identifiers, and {people:,} people were left out.",
        loss=share(release.loss),
        people=release.suppressed_people,
    )
    return Page(
        title=say("About these tables"),
        subtitle=say(
            "{tables:,} tables about the same people. Method: {method}.",
            tables=len(release.tables),
            method=release.method.title,
        ),
        verdict=VerdictCard(
            state=state,
            label=join((labels[state], phrase(release.promise)), " · "),
            headline=say(
                "Whoever joins the tables still finds at least {found:,} people who show the same in all of them.",
                found=int(crowd.achieved),
            ),
            details=(lost,),
        ),
        notice=Notice(
            title=say("This page may leave with the tables."),
            text=say(
                "It says what was promised of them and what that cost, and nothing else of the originals."
            ),
        ),
        key_figures=(
            Figure(say("Smallest group (people)"), count(int(crowd.achieved))),
            Figure(say("Loss of detail"), share(release.loss)),
            Figure(say("People left out"), count(release.suppressed_people)),
        ),
        sections=(_promise(release), *(_columns(release, name) for name in release.tables), _limits(release)),
        footer=join(
            (
                say("Made by velado."),
                *(
                    say("{file} has SHA-256 {sha256}.", file=f"{name}.csv", sha256=digest)
                    for name, digest in sha256.items()
                ),
            )
        ),
    )


def _promise(release: JoinedRelease) -> Section:
    """What was checked on the joined tables, and on each of them."""
    blocks: list[Block | str] = [
        say(
            "A group is all people who show the same in all tables together, being in a table at all included."
        ),
        Bullets([verdict_sentence(found) for found in release.verdicts]),
    ]
    for name, own in release.tables.items():
        # The first verdict is that of k, which the joined tables say for all.
        found = dict.fromkeys(verdict_sentence(one) for one in (*own.within[1:], *own.alone[1:]))
        if found:
            blocks += [
                say("In the table {name}, alone and within the joined groups:", name=name),
                Bullets([*found]),
            ]
    if release.smallest_by_row_counts is not None:
        blocks.append(
            say(
                "For who also knows how many rows a person has in each table the smallest group has {people:,} people.",
                people=release.smallest_by_row_counts,
            )
        )
    return section("promise", say("What was promised and checked"), *blocks)


def _columns(release: JoinedRelease, name: str) -> Section:
    """The columns of one table and what each lost; columns somebody signed for, with the reason."""
    own = release.tables[name]
    blocks: list[Block | str] = [
        table(
            say("Published columns"),
            own.frame.columns,
            (say("column"), lambda column: column),
            (
                say("loss of detail"),
                lambda column: share(own.losses[column]) if column in own.losses else NOTHING,
            ),
            labels=1,
        )
    ]
    if own.signed:
        signed = [f"{one.column} ({one.reason})" for one in own.signed]
        blocks.append(
            say(
                "These columns look like identifiers, and the owner signed for publishing them: {columns}.",
                columns=listed(signed),
            )
        )
    return section(f"columns-{name}", say("What each column of {name} is", name=name), *blocks)


def _limits(release: JoinedRelease) -> Section:
    """What the release does not promise."""
    limits = [
        say("Someone who knows more than the quasi-identifiers, or how many rows a person has."),
        say("Guessing a sensitive value better than before because it is frequent in a group."),
        say(
            "Combining this release with another one of the same people, made earlier or later or by somebody else."
        ),
        say(
            "What stands in columns that were published as they are, such as free text, dates and exact amounts."
        ),
        say("Finding out that somebody is in the table at all."),
        say(
            "Meeting a law: whether a table counts as anonymous is a decision of people, for which this report is "
            "evidence."
        ),
    ]
    intro = say("No release is without risk. This one does not protect against the following.")
    return section("limits", say("What this does not promise"), intro, Bullets(limits))
