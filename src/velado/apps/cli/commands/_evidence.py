"""`velado evidence`: a signed pack of what is known of a release, and the check of one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import click

from velado.apps.cli import options as flags
from velado.apps.cli import show
from velado.apps.cli.app import Group, OneOf, argument, command, group, option
from velado.text import language, say


class EvidenceGroup(Group):
    """`velado evidence out/` is `velado evidence make out/`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments with `make` put first where no sub-command is named."""
        if args and args[0] not in (*self.commands, "-h", "--help", "--lang"):
            args = ["make", *args]
        return super().parse_args(ctx, args)


app = group("evidence", help="Make or check the evidence pack of a release.", cls=EvidenceGroup)


@dataclass(frozen=True, kw_only=True)
class StatementFlags:
    """What people state in a pack.

    >>> StatementFlags(purpose="dengue study").purpose
    'dengue study'
    """

    controller: Annotated[str, option("--controller TEXT", help="Who decides about the data.")] = ""
    officer: Annotated[str, option("--officer TEXT", help="The data protection officer.")] = ""
    recipient: Annotated[str, option("--recipient TEXT", help="Who gets the table.")] = ""
    purpose: Annotated[str, option("--purpose TEXT", help="What for.")] = ""
    legal_basis: Annotated[str, option("--legal-basis TEXT", help="The legal basis.")] = ""
    necessity: Annotated[str, option("--necessity TEXT", help="Why less would not do.")] = ""
    retention: Annotated[str, option("--retention TEXT", help="How long the table is kept.")] = ""
    measures: Annotated[str, option("--measures TEXT", help="Safeguards around the table.")] = ""
    signed_by: Annotated[str, option("--signed-by NAME", help="Who signs for the release.")] = ""
    approved_by: Annotated[str, option("--approved-by NAME", help="The second person who approved.")] = ""
    remarks: Annotated[str, option("--remarks TEXT", help="Anything else.")] = ""


@command("make", app)
def make(
    release: Annotated[
        Path, argument("RELEASE", help="The published file, or the folder that `anonymize` made.")
    ],
    *,
    law: Annotated[
        str,
        option("--law", click_type=OneOf("velado.report.evidence.laws:LAWS"), help="The law it is read by."),
    ],
    output: Annotated[Path, option("--output -o FILE", help="The pack (zip).")],
    key: flags.OwnerKey = None,
    stated: StatementFlags,
    force: flags.Force = False,
) -> None:
    """Make the signed evidence pack of a release.

    RELEASE is the folder that `velado anonymize` wrote, with its private part. The published table is checked anew first. What no
    measure can say (purpose, recipient, legal basis ...) is stated with flags, or marked in the annex for a person to fill in.
    """
    if not force:
        flags.refuse_file(output)
    with show.waiting():
        from velado.report.evidence.statements import Statements
        from velado.study.evidence import gather_evidence

        made = gather_evidence(
            release,
            law,
            out=output,
            key=key,
            language=language(),
            statements=Statements(**vars(stated)),
            force=force,
        )
    document = made.document
    show.result(
        {
            "file": str(output),
            "law": law,
            "made": document["made"],
            "public_key": made.public_key,
            "files": sorted(made.files),
            "not_examined": document["found"]["not_examined"],
        },
        [
            say("The pack was written to {path}.", path=output),
            say("Signed with your key; its public half is {key}.", key=made.public_key),
            say("Tell who checks it by another way than the pack: {digits}.", digits=made.fingerprint),
            say("Open evidence.html in it to read and print; annex.md is there to be filled in."),
        ],
    )


@command("verify", app)
def verify(
    pack: Annotated[Path, argument("PACK", help="The evidence pack (zip).")],
    *,
    table: Annotated[
        Path | None, option("--table FILE", help="The published table: its bytes and groups are compared.")
    ] = None,
    key: Annotated[
        str | None,
        option(
            "--key KEY", help="The owner's public key: its 64 digits, or a file of `velado evidence key`."
        ),
    ] = None,
    original: Annotated[
        Path | None, option("--original FILE", help="With --rows: the original, to count people anew.")
    ] = None,
    rows: Annotated[
        Path | None, option("--rows FILE", help="With --original: rows.csv of the release's private folder.")
    ] = None,
    page: Annotated[
        Path | None, option("--page FILE", help="Write the page anew from the figures of the pack (HTML).")
    ] = None,
) -> None:
    """Check an evidence pack.

    Hashes, signature and pages are checked, with --table the verdicts too. Leaves with exit code 11 when something was changed,
    contradicts the rest, or belongs to another table or key.
    """
    flags.refuse_file(page)
    with show.waiting():
        from velado.study.evidence import verify_evidence

        found = verify_evidence(pack, table=table, key=key, original=original, rows=rows)
        if page is not None:
            from velado.data.staging import write_file

            write_file(page, found.pages()["evidence.html"])
    show.result(found.facts(), found.lines())


@command("key", app)
def public(
    *,
    output: Annotated[Path | None, option("--output -o FILE", help="Write it to a file too.")] = None,
    key: flags.OwnerKey = None,
) -> None:
    """Show the public key that your evidence packs are signed with.

    Give it to those who check your packs, by another way than the packs.
    """
    flags.refuse_file(output)
    from velado.report.evidence.signature import fingerprint, key_line
    from velado.study.evidence import public_key

    found = public_key(key)
    if output is not None:
        from velado.data.staging import write_file

        write_file(output, key_line(found).encode())
    show.result(
        {"public_key": found, "fingerprint": fingerprint(found)},
        [found, say("In sixteen digits: {digits}", digits=fingerprint(found))],
    )
