"""A pack is one form of one document: whatever is changed, added, hidden or made up in it is refused."""

import hashlib
import io
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.errors import EvidenceRefused, GuaranteeNotMet, InputError, ParameterError
from velado.release.guarantees import KAnonymity, LDiversity
from velado.release.operations import RoundNumbers
from velado.report.evidence.archive import LARGEST, write_archive
from velado.report.evidence.document import document_of, given_of
from velado.report.evidence.laws import LAWS
from velado.report.evidence.pack import CONTENT, LIST, SIGNATURE, files_of, list_of
from velado.report.evidence.signature import key_line, public_half, sign
from velado.report.evidence.statements import Statements
from velado.study.evidence import gather_evidence, public_key, verify_evidence
from velado.study.run import publish
from velado.text import speaking
from velado.text import told as told_in

OWNER, THIEF = Key(bytes(range(40))), Key(bytes(range(1, 41)))
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(days=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of people with several rows, one column held back and one dropped."""
    rows = 60
    frame = pl.DataFrame(
        {
            "patient": [f"P{n // 2:05d}" for n in range(rows)],
            "age": [20 + (7 * n) % 40 for n in range(rows)],
            "city": [("Viçosa", "Ubá", "Ponte Nova")[(n // 2) % 3] for n in range(rows)],
            "ward": [f"w{n % 4}" for n in range(rows)],
            "illness": [("flu", "cold", "gout")[(n * n) % 3] for n in range(rows)],
            "extra": ["x"] * rows,
        }
    )
    columns = {
        "patient": {"role": "identifier", "kind": "text", "person": True},
        "age": {"role": "quasi", "kind": "numeric"},
        "city": {"role": "quasi"},
        "ward": {"role": "other", "publish": False},
        "illness": {"role": "sensitive"},
    }
    schema = Schema.from_dict({"columns": columns, "dataset": {"name": "wards"}})
    out = tmp_path_factory.mktemp("evidence") / "out"
    publish(frame, schema, "mondrian", k=4, out=out, key=OWNER, undeclared="drop")
    frame.write_csv(out.parent / "original.csv")
    return out


@pytest.fixture(scope="module")
def pack(folder: Path):
    return gather_evidence(folder, "lgpd", key=OWNER, now=NOW)


def signed(document: dict[str, Any], key: Key = OWNER, **changed: bytes) -> bytes:
    """A pack that somebody with a key makes of any document and any files."""
    files = {**files_of(document), **changed}
    listed = list_of(document, files, public_half(key))
    return write_archive({**files, LIST: listed, SIGNATURE: f"{sign(listed, key)}\n".encode()})


def altered(pack, change: Callable[[dict[str, Any]], None]) -> bytes:
    """The pack of a document that was changed and signed anew; what follows from it follows."""
    document = json.loads(pack.files["evidence.json"])
    change(document)
    return signed({**document_of(given_of(document)), "velado": document["velado"]})


def refused(content: bytes, match: str | None = None, **more: Any) -> None:
    with pytest.raises(EvidenceRefused, match=match):
        verify_evidence(content, now=LATER, **more)


def test_the_same_release_statements_key_and_time_give_the_same_bytes(folder, pack) -> None:
    assert gather_evidence(folder, "lgpd", key=OWNER, now=NOW).content == pack.content
    assert gather_evidence(folder, "lgpd", key=THIEF, now=NOW).content != pack.content
    found = verify_evidence(pack.content, now=LATER)
    assert not found.pinned and found.pack.same_version and found.counted is None


@pytest.mark.parametrize("law", sorted(LAWS))
@pytest.mark.parametrize("language", ["en", "pt"])
def test_every_law_in_both_languages_gives_a_pack_that_holds(folder, law, language) -> None:
    made = gather_evidence(folder, law, key=OWNER, now=NOW, language=language)
    found = verify_evidence(made.content, table=folder / "release/table.csv", key=made.public_key, now=LATER)
    assert found.pinned and found.counted is not None
    page = made.files["evidence.html"].decode()
    first = {"en": "Evidence, not legal advice.", "pt": "Evidência, não parecer jurídico."}[language]
    assert page.index(first) < page.index('class="verdict') and first in made.files["annex.md"].decode()
    assert "@media print" in page


def test_a_pack_is_the_same_whatever_language_its_maker_speaks(tmp_path: Path) -> None:
    frame = pl.DataFrame({"age": [20 + n // 4 for n in range(40)], "illness": ["flu", "cold"] * 20})
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}}})
    promises = [LDiversity(2), KAnonymity(4)]
    publish(frame, schema, "mondrian", promises, out=tmp_path / "out", key=OWNER)
    table, packs = tmp_path / "out/release/table.csv", set()
    for spoken in ("en", "pt"):
        with speaking(spoken):
            made = gather_evidence(tmp_path / "out", "lgpd", key=OWNER, now=NOW, language="pt")
            assert verify_evidence(made.content, table=table, now=LATER).counted is not None
        packs.add(made.content)
    assert len(packs) == 1


def test_a_promise_may_be_asked_for_each_sensitive_column(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "age": [20 + n // 8 for n in range(40)],
            "illness": [f"i{n % 4}" for n in range(40)],
            "out": ["home", "ward"] * 20,
        }
    )
    columns = {"age": {"role": "quasi"}, "illness": {"role": "sensitive"}, "out": {"role": "sensitive"}}
    promises = [KAnonymity(4), LDiversity(2, column="illness"), LDiversity(2, column="out")]
    schema = Schema.from_dict({"columns": columns})
    done = publish(frame, schema, "mondrian", promises, out=tmp_path / "out", key=OWNER)
    told = [one.sentence() for one in done.release.verdicts]
    assert len(set(told)) == 3 and "'illness'" in told[1] and "'out'" in told[2]
    made = gather_evidence(tmp_path / "out", "lgpd", key=OWNER, now=NOW)
    assert [one["achieved"] for one in made.document["counted"]["verdicts"]][1:] == [4, 2]
    verify_evidence(made.content, table=tmp_path / "out/release/table.csv", now=LATER)
    page = (
        gather_evidence(tmp_path / "out", "lgpd", key=OWNER, now=NOW, language="pt")
        .files["evidence.html"]
        .decode()
    )
    assert all(f"<td>{n} valores distintos</td>" in page for n in (2, 4)) and "distinct values" not in page

    def swapped(document: dict[str, Any]) -> None:
        document["counted"]["verdicts"][2]["achieved"] = 4

    refused(altered(made, swapped))


def test_the_inventory_tells_every_column_of_the_source(pack) -> None:
    fates = {one["column"]: one["fate"] for one in pack.document["found"]["columns"]}
    assert fates == {
        "patient": "held back",
        "age": "generalized",
        "city": fates["city"],
        "ward": "held back",
        "illness": "published",
        "extra": "dropped",
    }


def test_statements_stand_in_the_annex_and_empty_ones_are_marked(folder) -> None:
    said = Statements(purpose="dengue <b>study</b>", recipient="UFV")
    made = gather_evidence(folder, "gdpr", key=OWNER, now=NOW, statements=said)
    annex = made.files["annex.html"].decode()
    assert "dengue &lt;b&gt;study" in annex and "☐ to be filled in by a person" in annex
    assert verify_evidence(made.content, now=LATER).document["statements"] == said.given
    with pytest.raises(ParameterError, match="purpose"):
        Statements(purpose="x" * 4001)


def test_what_was_not_examined_is_said_plainly(pack) -> None:
    page = pack.files["evidence.html"].decode()
    for words in ("Earlier or later releases", "Joins with tables that others hold", "rows of one person"):
        assert words in page


# ---- whose key it is


def test_an_enclosed_key_proves_integrity_alone_and_says_so(pack) -> None:
    by_thief = signed(json.loads(pack.files["evidence.json"]), THIEF)
    told = " ".join(verify_evidence(by_thief, now=LATER).lines())
    assert "not who signed" in told
    refused(by_thief, "not signed with the key", key=public_key(OWNER))


def test_a_key_is_pinned_by_its_digits_or_its_file(pack, tmp_path) -> None:
    path = tmp_path / "owner.pub"
    path.write_text(key_line(public_key(OWNER)))
    for key in (public_key(OWNER), public_key(OWNER).upper(), path, str(path)):
        assert verify_evidence(pack.content, key=key, now=LATER).pinned
    for wrong in ("", "abc", tmp_path / "no-such-file"):
        with pytest.raises(ParameterError, match="no public key"):
            verify_evidence(pack.content, key=wrong, now=LATER)


def test_the_signing_key_does_not_show_the_owners(pack) -> None:
    for content in pack.files.values():
        assert OWNER.secret not in content and OWNER.secret.hex().encode() not in content
        assert OWNER.seed_for("evidence signature").hex().encode() not in content


# ---- changed, added, hidden


@pytest.mark.parametrize("name", [*CONTENT, LIST, SIGNATURE])
def test_a_changed_file_is_refused(pack, name) -> None:
    files = dict(pack.files)
    files[name] = files[name].replace(b"e", b"a", 1)
    refused(write_archive(files))
    files[name] = pack.files[name] + b" "
    refused(write_archive(files))
    del files[name]
    refused(write_archive(files), "exactly the files")


@pytest.mark.parametrize(
    "name", ["more.html", "../evidence.html", "/etc/passwd", "a/evidence.json", "..\\x", "EVIDENCE.JSON"]
)
def test_a_file_outside_the_list_is_refused(pack, name) -> None:
    refused(write_archive({**pack.files, name: b"x"}), "exactly the files")


def test_a_second_file_of_a_name_is_refused(pack) -> None:
    for first in (True, False):
        out = io.BytesIO()
        with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(out, "w") as archive:
            if first:
                archive.writestr("evidence.html", b"another page")
            for name in sorted(pack.files):
                archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), pack.files[name])
            if not first:
                archive.writestr("evidence.html", b"another page")
        refused(out.getvalue(), "exactly the files")


def test_nothing_hides_before_behind_or_between_the_files(pack) -> None:
    refused(b"MZ" + pack.content)
    refused(pack.content + b"PK")
    commented = io.BytesIO(pack.content)
    with zipfile.ZipFile(commented, "a") as archive:
        archive.comment = b"signed by the authority"
    refused(commented.getvalue(), "not written as velado")
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(pack.files):
            archive.writestr(
                zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), pack.files[name], zipfile.ZIP_DEFLATED
            )
    refused(packed.getvalue(), "not written as velado")
    dated = io.BytesIO()
    with zipfile.ZipFile(dated, "w") as archive:
        for name in sorted(pack.files):
            archive.writestr(zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0)), pack.files[name])
    refused(dated.getvalue(), "not written as velado")


def test_every_single_byte_counts(pack) -> None:
    for at in range(0, len(pack.content), 61):
        flipped = bytearray(pack.content)
        flipped[at] ^= 0x01
        refused(bytes(flipped))


def test_archives_that_grow_or_lie_about_their_size_are_refused(pack) -> None:
    refused(b"\0" * (LARGEST + 1), "larger than")
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(pack.files):
            archive.writestr(name, b"\0" * 50_000_000 if name == "evidence.json" else pack.files[name])
    assert len(bomb.getvalue()) < 1_000_000
    refused(bomb.getvalue(), "not written as velado")
    lying = bytearray(pack.content)
    at = lying.index(b"PK\x01\x02")
    struct.pack_into("<II", lying, at + 20, 1 << 31, 1 << 31)
    refused(bytes(lying))
    for cut in (0, 10, len(pack.content) // 2, len(pack.content) - 1):
        refused(pack.content[:cut])


# ---- signed, and still not true


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d["manifest"]["promise"]["verdicts"][0].update(achieved=50), "differs|contradicts"),
        (lambda d: d["manifest"]["promise"]["verdicts"][0].update(achieved=1), "does not follow"),
        (lambda d: d["manifest"]["promise"]["verdicts"][0].update(holds=False), "does not follow"),
        (lambda d: d["manifest"]["promise"].update(verdicts=[]), "asked for"),
        (lambda d: d["counted"].update(sha256="00" * 32), "another table"),
        (lambda d: d["counted"].update(rows=59), "another table"),
        (lambda d: d["measured"].update(output_sha256="00" * 32), "another table"),
        (lambda d: d["measured"]["singling_out"].update(smallest_rows=9), "two ways"),
        (lambda d: d["measured"].update(counted_in="rows"), "two ways"),
        (lambda d: d["measured"]["singling_out"].update(highest_risk=0.001, mean_risk=0.001), "chances"),
        (lambda d: d["measured"]["sdc"].update(highest_risk=0.001), "chances"),
        (lambda d: d["measured"]["singling_out"].update(mean_risk=0.9), "chances"),
        (lambda d: d["measured"]["singling_out"].update(mean_risk=0.01), "chances"),
        (lambda d: d["measured"]["singling_out"]["share_above"].update({"0.5": 0.1}), "chances"),
        (lambda d: d["measured"]["singling_out"]["share_above"].update({"0.05": 0.0}), "chances"),
        (lambda d: d["measured"]["singling_out"].update(groups=2), "chances"),
        (lambda d: d["measured"]["singling_out"].update(unique_rows=1), "chances"),
        (lambda d: d["measured"]["singling_out"].update(smallest_people=30), "chances"),
        (lambda d: d["measured"]["linkability"].update(journalist_highest=0.001), "chances"),
        (lambda d: d["measured"]["linkability"].update(marketer=0.001), "chances"),
        (lambda d: d["manifest"]["output"].update(suppressed_rows=9), "left out"),
    ],
)
def test_a_pack_whose_parts_contradict_each_other_is_refused(pack, change, match) -> None:
    refused(altered(pack, change), match)


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory):
    """A release with a side door that is rounded and stands open, one that is accepted, and a column held back."""
    rows = 120
    age = [20 + (7 * n) % 60 for n in range(rows)]
    frame = pl.DataFrame(
        {
            "age": age,
            "city": [("Viçosa", "Ubá", "Ponte Nova")[n % 3] for n in range(rows)],
            "fee": [1003 + 500 * ((n + (n % 8 == 0)) % 3) for n in range(rows)],
            "born": [2020 - one for one in age],
            "ward": [f"w{n % 4}" for n in range(rows)],
            "illness": [("flu", "cold", "gout")[(n * n) % 3] for n in range(rows)],
        }
    )
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "city": {"role": "quasi"},
        "fee": {"role": "other", "kind": "numeric"},
        "born": {"role": "other", "kind": "numeric", "side_door": "accept", "reason": "wanted"},
        "ward": {"role": "other", "publish": False},
        "illness": {"role": "sensitive"},
    }
    out = tmp_path_factory.mktemp("decided") / "out"
    publish(
        frame,
        Schema.from_dict({"columns": columns}),
        "mondrian",
        k=4,
        out=out,
        key=OWNER,
        operations=[RoundNumbers(column="fee", to=100)],
    )
    return out, gather_evidence(out, "lgpd", key=OWNER, now=NOW)


def test_decisions_reach_the_pack_as_the_recipe_carries_them(decided) -> None:
    _, pack = decided
    found = {(one["column"], one["decision"]): one["reason"] for one in pack.document["found"]["decisions"]}
    assert found == {("born", "side_door"): "wanted", ("ward", "held back"): "", ("fee", "round"): ""}
    page = pack.files["evidence.html"].decode()
    assert "rounded" in page and "held back" in page
    doors = {one["column"]: one["accepted"] for one in pack.document["measured"]["side_doors"]}
    assert doors["born"] and not doors["fee"]
    assert "open: altered (numbers rounded), and gives this away still" in page


def test_a_column_that_is_matched_by_itself_is_told_in_head_tests_and_annex(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"age": [20 + n // 8 for n in range(40)], "pay": [900.5 + 37 * n for n in range(40)]}
    )
    columns = {"age": {"role": "quasi"}, "pay": {"role": "sensitive", "kind": "numeric"}}
    done = publish(
        frame, Schema.from_dict({"columns": columns}), "mondrian", k=4, out=tmp_path / "out", key=OWNER
    )
    made = gather_evidence(tmp_path / "out", "gdpr", key=OWNER, now=NOW)
    page = made.files["evidence.html"].decode()
    assert f"Smallest group {done.facts.smallest}; {done.facts.open_doors[1]} for who also reads pay." in page
    assert "smallest group for who also reads pay" in page[page.index("Singling out: can") :]
    assert "1 for who also reads pay" in made.files["annex.html"].decode()
    verify_evidence(made.content, table=tmp_path / "out/release/table.csv", now=LATER)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda d: d["manifest"].update(side_doors=[]), "side doors"),
        (lambda d: d["measured"].update(side_doors=[]), "side doors"),
        (lambda d: d["measured"]["side_doors"].pop(), "side doors"),
        (lambda d: d["manifest"]["schema"]["columns"]["born"].pop("side_door"), "signs"),
        (lambda d: d["measured"]["singling_out"].update(smallest_with_side_doors=50), "chances"),
    ],
)
def test_side_doors_that_are_told_in_two_ways_are_refused(decided, change, match) -> None:
    refused(altered(decided[1], change), match)


def test_figures_edited_in_the_folder_give_no_pack(decided, tmp_path) -> None:
    def edited(name: str, change: Callable[[dict[str, Any]], None]) -> Path:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(decided[0], folder)
        found = json.loads((folder / name).read_text("utf-8"))
        change(found)
        (folder / name).write_text(json.dumps(found), "utf-8")
        return folder

    risk = {"highest_risk": 0.001, "mean_risk": 0.001}
    with pytest.raises(EvidenceRefused, match="chances"):
        gather_evidence(
            edited("private/measured.json", lambda d: d["singling_out"].update(risk)), "lgpd", key=OWNER
        )
    with pytest.raises(EvidenceRefused, match="side doors"):
        gather_evidence(edited("release/manifest.json", lambda d: d.update(side_doors=[])), "lgpd", key=OWNER)
    with pytest.raises(EvidenceRefused, match="columns of the table"):
        gather_evidence(
            edited("release/manifest.json", lambda d: d["output"]["columns"].remove("born")),
            "lgpd",
            key=OWNER,
        )
    with pytest.raises(EvidenceRefused, match="Counted anew"):
        gather_evidence(
            edited("private/measured.json", lambda d: d["side_doors"][0].update(smallest_group=4)),
            "lgpd",
            key=OWNER,
        )


@pytest.mark.parametrize("name", ["evidence.html", "annex.html", "annex.md", "recipe.toml"])
def test_a_page_that_says_other_than_the_figures_is_refused(pack, name) -> None:
    document = json.loads(pack.files["evidence.json"])
    said = pack.files[name]
    other = said.replace(b"4", b"9", 1)
    assert other != said
    refused(signed(document, **{name: other}), "does not say what follows")


def test_what_follows_from_the_figures_cannot_be_told_otherwise(pack) -> None:
    document = json.loads(pack.files["evidence.json"])
    document["found"]["not_examined"] = []
    refused(signed(document), "does not say what follows")
    document = json.loads(pack.files["evidence.json"])
    document["found"]["columns"] = document["found"]["columns"][1:]
    refused(signed(document), "does not say what follows")


def test_a_document_of_another_form_is_refused(pack) -> None:
    for text in (
        b"[]",
        b"{}",
        b"{",
        b"null",
        b"[" * 100_000,
        b'{"format": 1}',
        b'{"format": 1, "format": 1}',
    ):
        listed = json.loads(pack.files[LIST])
        listed["files"]["evidence.json"] = {"sha256": hashlib.sha256(text).hexdigest(), "bytes": len(text)}
        told = (json.dumps(listed, indent=2, ensure_ascii=False) + "\n").encode()
        files = {
            **pack.files,
            "evidence.json": text,
            LIST: told,
            SIGNATURE: f"{sign(told, OWNER)}\n".encode(),
        }
        refused(write_archive(files))
    refused(signed({**json.loads(pack.files["evidence.json"]), "extra": "signed by the authority"}))


def test_pages_of_another_version_are_said_not_to_be_compared(pack) -> None:
    document = {**json.loads(pack.files["evidence.json"]), "velado": "99.0"}
    found = verify_evidence(signed(document), now=LATER)
    assert not found.pack.same_version
    assert "not compared word for word" in found.lines()[0]
    assert b"Evidence, not legal advice" in found.pages()["evidence.html"]


@pytest.mark.parametrize("made", ["2026-01-03T09:00:00+00:00", "9999-12-31T23:59:59+00:00"])
def test_a_time_yet_to_come_is_refused(pack, made) -> None:
    refused(altered(pack, lambda d: d.update(made=made)), "yet to come")


@pytest.mark.parametrize("made", ["yesterday", "", "2026-01-01T00:00:00", "2026-01-01"])
def test_a_time_that_is_none_is_refused(pack, made) -> None:
    # Pages cannot be made of it, so the files are those of the true pack.
    document = {**json.loads(pack.files["evidence.json"]), "made": made}
    files = {name: pack.files[name] for name in CONTENT}
    files["evidence.json"] = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    listed = list_of(document, files, public_half(OWNER))
    refused(write_archive({**files, LIST: listed, SIGNATURE: f"{sign(listed, OWNER)}\n".encode()}))


# ---- held against the table


def test_another_table_of_the_same_name_is_refused(pack, folder, tmp_path) -> None:
    text = (folder / "release/table.csv").read_text("utf-8")
    (tmp_path / "table.csv").write_text(text.replace("flu", "cold", 1), "utf-8")
    refused(pack.content, "another SHA-256", table=tmp_path / "table.csv")
    with pytest.raises(InputError):
        verify_evidence(pack.content, table=tmp_path / "nothing.csv", now=LATER)


def test_verdicts_are_counted_from_the_table_and_not_believed(pack, folder, tmp_path) -> None:
    """The owner signs a pack that fits a weaker table in every hash and figure but the count."""
    lines = (folder / "release/table.csv").read_text("utf-8").splitlines(keepends=True)
    rare = lines[0] + lines[1].replace(lines[1].split(",")[0], "[99..99]") + "".join(lines[2:])
    table = tmp_path / "table.csv"
    table.write_text(rare, "utf-8")
    digest = hashlib.sha256(table.read_bytes()).hexdigest()

    def claim(document: dict[str, Any]) -> None:
        document["manifest"]["output"]["sha256"] = digest
        document["counted"]["sha256"] = digest
        document["measured"]["output_sha256"] = digest

    claimed = altered(pack, claim)
    assert verify_evidence(claimed, now=LATER).counted is None  # it holds together
    refused(claimed, "does not give the figures|cannot be counted", table=table)


def test_people_are_counted_anew_with_the_original_and_its_row_numbers(pack, folder, tmp_path) -> None:
    held = {"table": folder / "release/table.csv", "original": folder.parent / "original.csv"}
    found = verify_evidence(pack.content, **held, rows=folder / "private/rows.csv", now=LATER)
    assert found.people and pack.document["found"]["unit"] == "people"
    alone = verify_evidence(pack.content, table=held["table"], now=LATER)
    assert not alone.people and "rows were counted" in " ".join(alone.lines())
    numbers = (folder / "private/rows.csv").read_text().split()
    wrong = tmp_path / "rows.csv"
    for told in (numbers[:-1], ["row", *(["1"] * (len(numbers) - 1))], [*numbers[:-1], "61"]):
        wrong.write_text("\n".join(told) + "\n")
        refused(pack.content, "do not fit", **held, rows=wrong)
    # Numbers in another order give rows to other people, and the smallest crowd of people is another one.
    fewer = pl.read_csv(held["original"]).with_columns(patient=pl.lit("P00000"))
    fewer.write_csv(tmp_path / "one.csv")
    one = {**held, "original": tmp_path / "one.csv"}
    refused(pack.content, "does not give the figures", **one, rows=folder / "private/rows.csv")
    with pytest.raises(ParameterError, match="go together"):
        verify_evidence(pack.content, original=held["original"], now=LATER)


# ---- making one


def test_a_release_that_no_longer_holds_gets_no_pack(folder, tmp_path) -> None:
    broken = tmp_path / "out"
    shutil.copytree(folder, broken)
    lines = (broken / "release/table.csv").read_text("utf-8").splitlines(keepends=True)
    (broken / "release/table.csv").write_text("".join(lines[:-1]), "utf-8")
    with pytest.raises((EvidenceRefused, GuaranteeNotMet)):
        gather_evidence(broken, "lgpd", key=OWNER, now=NOW)


def test_a_folder_that_is_no_release_and_an_unknown_law_are_refused(folder, tmp_path) -> None:
    with pytest.raises(InputError, match="not the folder of a release"):
        gather_evidence(tmp_path, "lgpd", key=OWNER)
    with pytest.raises(ParameterError, match="lgdp"):
        gather_evidence(folder, "lgdp", key=OWNER)


def test_a_release_without_figures_says_that_they_are_missing(folder, tmp_path) -> None:
    bare = tmp_path / "out"
    shutil.copytree(folder, bare)
    (bare / "private/measured.json").unlink()
    made = gather_evidence(bare, "hipaa", key=OWNER, now=NOW)
    assert "figures" in made.document["found"]["not_examined"]
    assert verify_evidence(made.content, table=bare / "release/table.csv", now=LATER).counted
    (bare / "private/measured.json").write_text("{")
    with pytest.raises(InputError, match="measured"):
        gather_evidence(bare, "hipaa", key=OWNER, now=NOW)


def test_a_pack_is_private_and_is_not_overwritten(folder, tmp_path) -> None:
    path = tmp_path / "pack.zip"
    gather_evidence(folder, "lgpd", out=path, key=OWNER, now=NOW)
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(Exception, match="exists already"):
        gather_evidence(folder, "lgpd", out=path, key=OWNER, now=NOW)


def test_hipaa_puts_columns_under_its_eighteen_identifiers(folder) -> None:
    page = gather_evidence(folder, "hipaa", key=OWNER, now=NOW).files["evidence.html"].decode()
    assert page.count("<td>(") == 18
    for letter, column in (("A", "–"), ("B", "city"), ("C", "age"), ("H", "patient")):
        row = page[page.index(f"<td>({letter})</td>") :].split("</tr>")[0]
        assert column in row, letter


def test_what_all_columns_tell_apart_is_counted_anew(folder, pack) -> None:
    table, original, rows = (
        folder / "release/table.csv",
        folder.parent / "original.csv",
        folder / "private/rows.csv",
    )
    true = pack.document["measured"]["all_columns"]
    assert true["unit"] == "people" and 0 < true["alone"] <= true["units"]

    def told(alone: int) -> bytes:
        return altered(pack, lambda document: document["measured"]["all_columns"].update(alone=alone))

    refused(told(0), match="Counted anew", table=table)
    exact = {"table": table, "original": original, "rows": rows}
    found = verify_evidence(pack.content, now=LATER, **exact)
    assert found.together is not None and found.together.alone == true["alone"]
    assert any("like nobody else" in line for line in found.lines())
    for other in {0, true["alone"] - 1, true["alone"] + 1} - {true["alone"]}:
        if 0 <= other <= true["units"]:
            refused(told(other), match="Counted anew", **exact)
    bounded = verify_evidence(pack.content, table=table, now=LATER)
    assert any("is believed" in line for line in bounded.lines())
    assert any("acredita" in told_in(line, "pt") for line in bounded.lines())


def test_rows_that_all_columns_tell_apart_are_counted_exactly(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {"age": [20 + n // 4 for n in range(40)], "note": [f"n{n // 2}" for n in range(38)] + ["a", "b"]}
    )
    schema = Schema.from_dict({"columns": {"age": {"role": "quasi"}, "note": {"role": "sensitive"}}})
    publish(frame, schema, "mondrian", k=4, out=tmp_path / "out", key=OWNER)
    made = gather_evidence(tmp_path / "out", "lgpd", key=OWNER, now=NOW)
    table = tmp_path / "out/release/table.csv"
    assert made.document["measured"]["all_columns"] == {"unit": "rows", "units": 40, "alone": 2}
    assert any("2 of 40" in line for line in verify_evidence(made.content, table=table, now=LATER).lines())
    for alone in (1, 3):
        forged = altered(made, lambda document, n=alone: document["measured"]["all_columns"].update(alone=n))
        refused(forged, match="Counted anew", table=table)


def test_a_number_too_large_to_compute_with_is_refused(pack) -> None:
    def huge(document: dict[str, Any]) -> None:
        document["measured"]["sdc"]["suppressed"] = 10**400

    document = json.loads(pack.files["evidence.json"])
    huge(document)
    files = dict(pack.files)
    content = {name: files[name] for name in CONTENT} | {"evidence.json": json.dumps(document).encode()}
    listed = list_of(document, content, public_half(OWNER))
    refused(write_archive({**content, LIST: listed, SIGNATURE: f"{sign(listed, OWNER)}\n".encode()}))


def test_no_more_people_than_rows_are_told(pack) -> None:
    def crowd(document: dict[str, Any]) -> None:
        people = document["manifest"]["output"]["rows"] + 1
        document["measured"]["people_published"] = people
        document["measured"]["all_columns"]["units"] = people

    refused(altered(pack, crowd), match="contradicts itself")
