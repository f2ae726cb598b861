"""gather_evidence() and verify_evidence(): a release folder into a signed pack, and a pack held against its table and key."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from velado.data.io import read_table
from velado.data.keys import Key, owner_key
from velado.data.normal import value_codes
from velado.data.release_folder import ReleaseFiles, read_bytes, read_release_files
from velado.data.schema import Schema
from velado.data.staging import write_file
from velado.data.table import Table
from velado.errors import EvidenceRefused, InputError, ParameterError
from velado.measures.risk.rows_together import ToldTogether, told_together
from velado.release.guarantees import GUARANTEES
from velado.release.guarantees._guarantee import Guarantee
from velado.release.side_doors import promise_with_side_doors
from velado.release.verify import verify
from velado.report.evidence.archive import LARGEST
from velado.report.evidence.document import Document, Given, all_columns
from velado.report.evidence.laws import LAWS
from velado.report.evidence.pack import EvidencePack, ReadPack, files_of, make_pack, read_pack
from velado.report.evidence.signature import fingerprint, public_half, read_key_line
from velado.report.evidence.statements import Statements
from velado.report.render import as_values
from velado.settings import nearest
from velado.study.run import read_recipe
from velado.text import Language, listed, moment, say, speaking


@dataclass(frozen=True, kw_only=True, repr=False)
class GatheredEvidence(EvidencePack):
    """A pack and where it was written, if it was.

    >>> GatheredEvidence(content=b"", files={}, document={"law": "lgpd"}, public_key="").path is None
    True
    """

    path: Path | None = None


def public_key(key: Key | str | Path | None = None) -> str:
    """The public half of the key that signs the owner's packs: 64 hexadecimal digits.

    >>> len(public_key(Key(bytes(range(40)))))
    64
    """
    return public_half(owner_key(key))


def check_law(law: str) -> None:
    """Nothing, or an error where no pack can be read by that law.

    >>> check_law("lgpd")
    """
    if law not in LAWS:
        raise ParameterError(
            say("There is no law '{law}' to read a pack by.", law=str(law)[:40]),
            say("Known are {laws}.", laws=listed(list(LAWS))),
            nearest(str(law), list(LAWS)) or "Choose one of them.",
        )


def gather_evidence(
    release: str | Path,
    law: str,
    *,
    out: str | Path | None = None,
    key: Key | str | Path | None = None,
    language: Language = "en",
    statements: Statements | None = None,
    force: bool = False,
    now: datetime | None = None,
) -> GatheredEvidence:
    """The signed pack of the release in a folder that `publish` made; written to *out* if one is named.

    The published table is checked anew first, and a release that no longer holds gets no pack. *key* is the owner's, by default
    that of this user. The same folder, statements, key and time give the same bytes.

    >>> gather_evidence("no-such-folder", "lgpd")
    Traceback (most recent call last):
    velado.errors.InputError: 'no-such-folder' is not the folder of a release of one table. A pack is made from its manifest, its recipe and its table. Give the folder that `velado anonymize -o` wrote, with its private part.
    """
    check_law(law)
    folder = Path(release)
    files = read_release_files(folder)
    _check_whole(files)
    _check_told(files.manifest, files.measured, files.table)
    given = Given(
        manifest=files.manifest,
        counted=count_table(files.manifest, files.table),
        measured=files.measured,
        statements=(statements or Statements()).given,
        made=(now or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        law=law,
        language=language,
        manifest_sha256=files.manifest_sha256,
    )
    pack = make_pack(given, owner_key(key))
    path = None if out is None else write_file(Path(out), pack.content, force, private=True)
    return GatheredEvidence(**{**vars(pack), "path": path})


def _check_whole(files: ReleaseFiles) -> None:
    """The published table keeps its promises still, under the schema of its recipe."""
    recipe = read_recipe(files.recipe)
    found = verify(
        files.table,
        recipe.schema,
        [one for one in _guarantees(files.manifest) if one.reads != "population"],
        undeclared="keep",
    )
    if found.broken is not None:
        raise found.broken


def _check_told(manifest: Document, measured: Document | None, source: Path) -> None:
    """The columns and the groups behind side doors that are told are those of the table."""
    frame = read_table(source).frame
    escaped = manifest["output"]["escaped_names"]
    frame = frame.rename({shown: name for name, shown in escaped.items() if shown in frame.columns})
    if sorted(frame.columns) != sorted(manifest["output"]["columns"]):
        raise EvidenceRefused(
            "The columns of the table are not those that the manifest names.",
            "A column that is told wrongly is one that nobody decided about.",
            "Publish the table again, and change nothing in its folder.",
        )
    if measured is None:
        return
    quasi = [
        name
        for name, column in manifest["schema"]["columns"].items()
        if column["role"] == "quasi" and name in frame.columns
    ]
    single = measured["singling_out"]
    told = [
        (single["side_door_columns"], single["smallest_with_side_doors"]),
        *((one["together"] or [one["column"]], one["smallest_group"]) for one in measured["side_doors"]),
    ]
    for columns, smallest in told:
        # A file shows at most as much as the table in memory: a blank and an empty text are one there.
        if smallest is not None and smallest > promise_with_side_doors(frame, quasi, columns):
            raise _differs()
    _check_together(measured, frame, told_together(frame))


def _check_together(measured: Document, frame: pl.DataFrame, found: ToldTogether) -> None:
    """What all published columns together tell apart is told as it is: rows, or people if *found* counts them, exactly.

    Where people are told and rows were counted it is told as no less than the rows show.
    """
    told = all_columns(measured)
    if told is None:
        return
    if told["unit"] != found.unit:
        wrong = told["alone"] < least_alone(told["units"], found)
    else:
        blanks = any(frame.select(pl.all().cast(pl.String).fill_null("").eq("").any()).row(0))
        # Here too a file may show less: where it has no blank cell, it shows the same.
        wrong = told["alone"] < found.alone or (told["alone"] > found.alone and not blanks)
        wrong = wrong or told["units"] != found.units
    if wrong:
        raise _differs()


def least_alone(people: int, rows: ToldTogether) -> int:
    """How many of *people* are at least like nobody else, by the rows of their table that are like no other.

    Such a row is of somebody like nobody else, so at most as many people as there are other rows may be like somebody.

    >>> least_alone(1700, ToldTogether("rows", 2000, 2000)), least_alone(30, ToldTogether("rows", 60, 4))
    (1700, 1)
    """
    return max(people - (rows.units - rows.alone), min(rows.alone, 1))


def _guarantees(manifest: Document) -> list[Guarantee]:
    kinds = {kind.name: kind for kind in GUARANTEES}
    return [
        kinds[one["name"]](**{key: value for key, value in one.items() if key != "name"})
        for one in manifest["how"]["guarantees"]
    ]


def bare_schema(manifest: Document) -> Schema:
    """What the manifest says of columns, without taxonomies: groups are counted by what the published cells show.

    >>> from velado.testing.examples import small_evidence
    >>> [column.name for column in bare_schema(small_evidence().document["manifest"]).quasi]
    ['age']
    """
    schema = manifest["schema"]
    columns = {
        name: {
            key: value
            for key, value in column.items()
            if key
            in (
                "role",
                "kind",
                "publish",
                "person",
                "side_door",
                "identifier",
                "reason",
                "missing",
                "case",
            )
        }
        for name, column in schema["columns"].items()
    }
    # Texts that meant no value are no part of it: they are blank in what was published.
    table = {k: v for k, v in schema.get("table", {}).items() if k in ("missing", "decimal")}
    return Schema.from_dict({"table": table, "columns": columns})


def count_table(manifest: Document, source: Path, people: pl.Series | None = None) -> dict[str, Any]:
    """A fresh count of a published table by what its manifest says of it: its digest, its groups, each promise.

    Where *people* says whose each row is, people are counted. Promises about a population, and those whose distances follow a
    taxonomy, cannot be counted from the table alone and are left out.

    >>> import tempfile
    >>> from velado.testing.examples import small_evidence, small_release
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "table.csv")
    ...     _ = path.write_bytes(small_release().release.to_csv())
    ...     count_table(small_evidence().document["manifest"], path)["smallest_group"]
    2
    """
    schema = bare_schema(manifest)
    with_tree = {name for name, column in manifest["schema"]["columns"].items() if "taxonomy" in column}
    asked = [
        one
        for one in _guarantees(manifest)
        if one.reads != "population"
        and not (one.name == "t-closeness" and with_tree & {column.name for column in schema.sensitive})
    ]
    given: Any = source
    person = schema.person
    if people is not None and person is not None:
        frame = read_table(source).frame
        given = frame.with_columns(people.cast(pl.String).alias(person.name))
    found = verify(given, schema, asked, undeclared="keep")
    # A pack is one document whatever language its maker speaks; the words of its figures are compared.
    with speaking("en"):
        told: Any = as_values(
            {
                "sha256": hashlib.sha256(read_bytes(source)).hexdigest(),
                "rows": found.rows,
                "groups": found.checked.partition.count,
                "smallest_group": found.smallest,
                "verdicts": [asdict(verdict) for verdict in found.checked.verdicts],
                "exposed_columns": sorted(
                    {*found.exposed, *(one.column for one in found.identifying)} - _added(people, schema)
                ),
            }
        )
    return dict(told)


def _added(people: pl.Series | None, schema: Schema) -> set[str]:
    return set() if people is None or schema.person is None else {schema.person.name}


@dataclass(frozen=True, kw_only=True, repr=False)
class CheckedEvidence:
    """A pack that holds together, and what it was held against.

    *pinned*: it was signed with the key that was given. *counted* is the fresh count of the table, None where none was given;
    *people* says that people were counted too. *together* is a fresh count of what all published columns tell apart.

    >>> from velado.testing.examples import small_evidence
    >>> verify_evidence(small_evidence().content).pinned
    False
    """

    pack: ReadPack
    pinned: bool
    counted: Mapping[str, Any] | None
    people: bool = False
    together: ToldTogether | None = None

    @property
    def document(self) -> Document:
        """What the pack says."""
        return self.pack.document

    @property
    def fingerprint(self) -> str:
        """The key it was signed with, in sixteen digits."""
        return fingerprint(self.pack.public_key)

    def pages(self) -> dict[str, bytes]:
        """The files of the pack made anew by this velado from its figures."""
        return files_of(self.document)

    def lines(self) -> list[str]:
        """What was found, in sentences."""
        output = self.document["manifest"]["output"]
        lines: list[str] = [
            say(
                "The pack is whole: every file is as it was signed on {time}, and the pages say what its figures say.",
                time=moment(self.pack.made),
            )
            if self.pack.same_version
            else say(
                "The pack is whole: every file is as it was signed on {time}. Its pages were made by velado {version} and were "
                "not compared word for word: read those that --page writes.",
                time=moment(self.pack.made),
                version=self.document["velado"],
            ),
            say("Signed with the key that you gave ({key}).", key=self.fingerprint)
            if self.pinned
            else say(
                "Signed with the key enclosed ({key}). That proves that nothing was changed since, not who signed: compare "
                "the key with the owner by another way, or give it with --key.",
                key=self.fingerprint,
            ),
        ]
        if self.counted is None:
            lines.append(
                say(
                    "The table was not looked at: --table {file} counts it anew.",
                    file=output["file"],
                )
            )
        else:
            lines.append(
                say(
                    "The table is the one of the pack ({rows:,} rows), and counted anew every promise that can be counted "
                    "from it gives the same figure; its smallest group has {smallest:,} rows.",
                    rows=self.counted["rows"],
                    smallest=self.counted["smallest_group"],
                )
            )
            if self.document["found"]["unit"] == "people":
                lines.append(
                    say("People were counted anew too.")
                    if self.people
                    else say(
                        "The promise counts people, which the table does not show: rows were counted. The owner can count "
                        "people with --original and --rows."
                    )
                )
            lines += self._of_all_columns()
        if not self.document["found"]["holds"]:
            lines.append(say("Not every promise holds, and the pack says so."))
        return lines

    def _of_all_columns(self) -> list[str]:
        """What of the people, or rows, that all published columns tell apart was counted, and what is believed."""
        told = all_columns(self.document["measured"])
        if told is None or self.together is None:
            return []
        figures = {"alone": told["alone"], "of": told["units"]}
        if told["unit"] == self.together.unit:
            return [
                say(
                    "So were those like nobody else by all published columns together: {alone:,} of {of:,}.",
                    **figures,
                )
            ]
        return [
            say(
                "The pack says that by all published columns together {alone:,} of {of:,} people are like nobody else. The table "
                "shows that, of so many people, it is {least:,} at least; the rest is believed.",
                **figures,
                least=least_alone(told["units"], self.together),
            )
        ]

    def facts(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "holds_together": True,
            "law": self.document["law"],
            "made": self.document["made"],
            "velado": self.document["velado"],
            "public_key": self.pack.public_key,
            "key_pinned": self.pinned,
            "pages_compared": self.pack.same_version,
            "table_counted": None if self.counted is None else dict(self.counted),
            "people_counted": self.people,
            "all_columns_counted": None if self.together is None else asdict(self.together),
            "unit": self.document["found"]["unit"],
            "every_promise_holds": self.document["found"]["holds"],
            "verdicts": self.document["manifest"]["promise"]["verdicts"],
        }


def verify_evidence(
    pack: bytes | str | Path,
    *,
    table: str | Path | None = None,
    key: str | Path | None = None,
    original: str | Path | None = None,
    rows: str | Path | None = None,
    now: datetime | None = None,
) -> CheckedEvidence:
    """What a pack was found to be, or an error: it was changed, contradicts itself, or is of another table or key.

    *key* is the owner's public key, as digits or as a file of `velado evidence key`; without it the pack proves only that nothing
    was changed since it was signed with the key it encloses. *table* is the published table: its bytes are compared and its
    groups counted. With *original* and *rows* (the private `rows.csv`) people are counted too.

    >>> verify_evidence(b"no zip")
    Traceback (most recent call last):
    velado.errors.EvidenceRefused: The file is not a zip archive that can be read whole. It was cut short or changed, or is another file. Ask for the pack again, from who signed it.
    """
    if (original is None) != (rows is None) or (original is not None and table is None):
        raise ParameterError(
            "--original and --rows go together, and with --table.",
            "Together they tell whose each published row is.",
            "Give all three, or none of the two.",
        )
    content = pack if isinstance(pack, bytes) else read_bytes(Path(pack), LARGEST)
    read = read_pack(content, now or datetime.now(UTC))
    if key is not None and _given_key(key) != read.public_key:
        raise EvidenceRefused(
            "The pack was not signed with the key that you gave.",
            "Somebody else signed it, or the owner used another key.",
            "Do not rely on it; ask the owner which key is theirs.",
        )
    if table is None:
        return CheckedEvidence(pack=read, pinned=key is not None, counted=None)
    counted, people, together = _counted(read.document, Path(table), original, rows)
    return CheckedEvidence(
        pack=read, pinned=key is not None, counted=counted, people=people, together=together
    )


def _given_key(key: str | Path) -> str:
    try:
        return read_key_line(str(key))
    except ParameterError:
        path = Path(key)
        if not path.is_file():
            raise
    return read_key_line(read_bytes(path, 1000).decode("utf-8", "replace"))


def _counted(
    document: Document, table: Path, original: str | Path | None, rows: str | Path | None
) -> tuple[dict[str, Any], bool, ToldTogether]:
    manifest = document["manifest"]
    if hashlib.sha256(read_bytes(table)).hexdigest() != manifest["output"]["sha256"]:
        raise EvidenceRefused(
            "The table is not the one of the pack: its bytes have another SHA-256.",
            "The pack says nothing about it, whatever it is called.",
            "Give the file that was published, unchanged; a spreadsheet program rewrites a file that it saves.",
        )
    try:
        counted = count_table(manifest, table)
        _check_told(manifest, document["measured"], table)
        if counted != document["counted"]:
            raise _differs()
        frame = read_table(table).frame
        if original is None or rows is None:
            return counted, False, told_together(frame)
        people = _people(manifest, original, rows)
        with_people = count_table(manifest, table, people)
        together = told_together(frame, _codes(manifest, people))
        if document["measured"] is not None:
            _check_together(document["measured"], frame, together)
    except InputError as error:
        raise EvidenceRefused(
            "The table cannot be counted by what the pack says of it.", error.what, "Do not rely on the pack."
        ) from None
    told = [one for one in manifest["promise"]["verdicts"] if one["unit"] == "people"]
    again = [one for one in with_people["verdicts"] if one["unit"] == "people"]
    if [(v["guarantee"], v["achieved"], v["holds"]) for v in told] != [
        (v["guarantee"], v["achieved"], v["holds"]) for v in again
    ]:
        raise _differs()
    return counted, bool(told), together


def _codes(manifest: Document, people: pl.Series) -> npt.NDArray[np.int32]:
    """Whose each row is, as codes; two spellings of one person are one."""
    person = bare_schema(manifest).person
    assert person is not None
    rows = pl.DataFrame({person.name: people.cast(pl.String)})
    return value_codes(Table.of(rows, Schema({person.name: person}), undeclared="keep"), person)[0]


def _people(manifest: Document, original: str | Path, rows: str | Path) -> pl.Series:
    """Whose each published row is: the person of the original row that the private numbers name."""
    person = next((name for name, one in manifest["schema"]["columns"].items() if one.get("person")), None)
    frame, numbers = read_table(Path(original)).frame, read_table(Path(rows)).frame
    if person is None or person not in frame.columns or "row" not in numbers.columns:
        raise ParameterError(
            "The original does not show who is a person, or the other file holds no row numbers.",
            "People cannot be counted without both.",
            "Give the table that was anonymized, and rows.csv of its private folder.",
        )
    places = numbers["row"].cast(pl.Int64, strict=False) - 1
    fit = places.null_count() == 0 and places.len() == manifest["output"]["rows"]
    if not fit or not places.is_between(0, frame.height - 1).all() or places.n_unique() != places.len():
        raise EvidenceRefused(
            "The row numbers do not fit the two tables.",
            "They belong to another release, or were changed.",
            "Give rows.csv of the private folder of this release.",
        )
    found: pl.Series = frame[person].gather(places)
    nobody = _nobody(manifest, person, Path(rows).parent / "recipe.toml")
    return found.set(found.cast(pl.String).is_in(nobody).fill_null(False), None) if nobody else found


def _nobody(manifest: Document, person: str, recipe: Path) -> list[str]:
    """The texts that mean nobody: the pack tells how many there are, the recipe beside the row numbers which."""
    declared = manifest["schema"]
    told = declared["columns"][person].get("missing_values", declared.get("table", {}).get("missing_values"))
    if told is None or not told["texts"] or not recipe.is_file():
        return []
    texts = read_recipe(recipe).schema.missing_texts(person)
    return list(texts) if len(texts) == told["texts"] else []


def _differs() -> EvidenceRefused:
    return EvidenceRefused(
        "Counted anew, the table does not give the figures of the pack.",
        "The pack was signed, but what it says of this table is not so.",
        "Do not rely on it; ask who signed it.",
    )
