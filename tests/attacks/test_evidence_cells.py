"""An evidence pack holds no cell of the table: every distinct value is looked for, in every form it might hide in."""

import base64
import hashlib
import html
import io
import json
import re
import urllib.parse
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from velado.data.keys import Key
from velado.data.schema import Schema
from velado.release.guarantees import LDiversity
from velado.release.operations import RoundNumbers
from velado.study.evidence import gather_evidence
from velado.study.run import publish

KEY = Key(bytes(range(40)))
ROWS = 48
NASTY = (
    "zé<ção>&\"q'",
    "naïve\nline",
    "tab\there",
    "☃ snow",
    "{brace} %s $x",
    "\\back\\slash",
    "=cmd|' /C'!A0",
    "ﬀ-ligature",
)


def forms(value: str) -> Iterator[bytes]:
    """A value as files write it: plain, escaped, encoded, hashed."""
    quoted = json.dumps(value)[1:-1]
    kept = json.dumps(value, ensure_ascii=False)[1:-1]
    texts = {
        value,
        quoted,
        kept,
        html.escape(value),
        html.escape(value, quote=False),
        urllib.parse.quote(value),
    }
    texts |= {" ".join(value.split()), value.upper(), value.lower(), value[::-1]}
    for text in texts:
        yield text.encode()
        yield text.encode("utf-16-le")
    data = value.encode()
    for digest in (hashlib.sha256, hashlib.sha1, hashlib.md5):
        yield digest(data).hexdigest().encode()
    yield data.hex().encode()
    for shift in range(3):
        yield base64.b64encode(b"\0" * shift + data)[4:-4] or b"\xff\xff"


def table() -> tuple[pl.DataFrame, Schema, dict[str, list[str]]]:
    places = [f"Qw{n}{NASTY[n % len(NASTY)]}" for n in range(8)]
    regions = [f"Region-Zx{n // 4}-ü" for n in range(8)]
    frame = pl.DataFrame(
        {
            "who": [f"Xanthippe {n:04d} Ypsilanti" for n in range(ROWS)],
            "income": [f"{700_000.37 + 1311.13 * n:.2f}" for n in range(ROWS)],
            "place": [places[n % 8] for n in range(ROWS)],
            "shade": [("Mauvette-77", "Puceish-88")[n % 2] for n in range(ROWS)],
            "illness": [f"Illness {NASTY[n % 5]} kw{n % 5}" for n in range(ROWS)],
            "note": [f"Held{n}back {NASTY[n % len(NASTY)]}" for n in range(ROWS)],
            "loose": [f"Dropped{n}q" for n in range(ROWS)],
        }
    )
    nodes = {
        region: [p for p, r in zip(places, regions, strict=True) if r == region]
        for region in sorted(set(regions))
    }
    columns = {
        "who": {"role": "identifier", "kind": "text", "person": True},
        "income": {"role": "quasi", "kind": "numeric", "bounds": [700_000.37, 800_000.91]},
        "place": {"role": "quasi", "taxonomy": {"builder": "tree", "nodes": nodes}},
        "shade": {"role": "quasi", "values": ["Mauvette-77", "Puceish-88"]},
        "illness": {"role": "sensitive"},
        "note": {"role": "other", "kind": "text", "publish": False},
    }
    values = {name: sorted(set(frame[name].to_list())) for name in frame.columns}
    values["labels"] = sorted(set(regions))
    values["bounds"] = ["700000.37", "800000.91"]
    return frame, Schema.from_dict({"columns": columns}), values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "operations"),
    [("lgpd", ()), ("hipaa", (RoundNumbers("income", 1311.13),))],
    ids=["plain", "rounded"],
)
def test_no_cell_stands_in_a_pack_in_any_form(tmp_path: Path, law: str, operations: tuple) -> None:
    frame, schema, values = table()
    out = tmp_path / "out"
    done = publish(
        frame,
        schema,
        "mondrian",
        (LDiversity(2),),
        k=4,
        out=out,
        key=KEY,
        undeclared="drop",
        operations=operations,
        suppression=0.1,
    )
    shown = done.release.aligned
    for name in shown.columns:  # what was published is no less a cell
        values.setdefault(
            f"published {name}", sorted({str(v) for v in shown[name].to_list() if len(str(v)) > 4})
        )
    if operations:
        values["step"] = ["1311.13"]
    pack = gather_evidence(out, law, key=KEY, language="pt")
    with zipfile.ZipFile(io.BytesIO(pack.content)) as archive:
        whole = b"\0".join([archive.read(name) for name in archive.namelist()])
    assert b"income" in whole and b"illness" in whole  # names of columns do stand in it
    found = {
        name: sum(form in whole for value in column for form in forms(value))
        for name, column in values.items()
    }
    assert {name: hits for name, hits in found.items() if hits} == {}
    figures = (out / "private/measured.json").read_bytes()
    assert not any(form in figures for column in values.values() for value in column for form in forms(value))


def other_words(frame: pl.DataFrame) -> pl.DataFrame:
    """The same table in other values: numbers moved by a round step, names changed; order and distances as they were."""
    return frame.with_columns(
        age=pl.col("age") + 100, city=pl.col("city").str.replace("^", "Z"), illness="X" + pl.col("illness")
    )


def test_a_pack_of_other_values_differs_in_digests_alone(tmp_path: Path) -> None:
    """Short numbers, such as an age of 46, stand in percentages by chance; so the values are changed, and the pack stays."""
    frame = pl.DataFrame(
        {
            "age": [20 + (7 * n) % 40 for n in range(ROWS)],
            "city": ["ABC"[n % 3] for n in range(ROWS)],
            "illness": [("flu", "cold", "gout", "asthma")[(n * n + n // 5) % 4] for n in range(ROWS)],
        }
    )
    columns = {
        "age": {"role": "quasi", "kind": "numeric"},
        "city": {"role": "quasi", "values": ["A", "B", "C"]},
        "illness": {"role": "sensitive"},
    }
    told = []
    for at, one in enumerate((frame, other_words(frame))):
        named = {**columns, "city": {"role": "quasi", "values": sorted(set(one["city"].to_list()))}}
        schema = Schema.from_dict({"columns": named})
        publish(one, schema, "mondrian", (LDiversity(2),), k=4, out=tmp_path / f"{at}", key=KEY)
        files = gather_evidence(
            tmp_path / f"{at}", "lgpd", key=KEY, language="pt", now=datetime(2026, 1, 2, tzinfo=UTC)
        ).files
        told.append(
            {
                name: re.sub(rb"[0-9a-f]{64}", b"#", content)
                for name, content in files.items()
                if name != "pack.sig"
            }
        )
    assert told[0].keys() == told[1].keys()
    assert [name for name in told[0] if told[0][name] != told[1][name]] == []


def test_the_search_would_find_a_value_in_any_form() -> None:
    for value in ("Mauvette-77", *NASTY):
        for kind in (str, json.dumps, html.escape, urllib.parse.quote):
            text = f"<td>{kind(value)}</td>".encode()
            assert any(form in text for form in forms(value)), (kind, value)
        hidden = base64.b64encode(b"some bytes before " + value.encode() + b" and behind")
        assert len(value.encode()) < 9 or any(form in hidden for form in forms(value))
