"""The first bytes name a format: what a library reads is read, what none reads is named, damage is one sentence."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import io
import random
import subprocess
import sys
import zipfile
import zlib

import polars as pl
import pyreadstat
import pytest

from velado.data.csv_reading import found_encoding
from velado.data.formats import FORMATS, foreign, format_of, packed
from velado.data.inspect import inspect
from velado.data.io import read_schema, read_table
from velado.data.schema import Column, Schema
from velado.data.schema_draft import schema_toml
from velado.errors import MissingExtra, TableError, VeladoError

FRAME = pl.DataFrame(
    {
        "nome": [f"SECRET {n % 7}" for n in range(200)],
        "idade": list(range(200)),
        "dia": [dt.date(2020, 1, 1)] * 200,
        "peso": [n * 0.5 if n % 5 else None for n in range(200)],
    }
)
CSV = FRAME.write_csv().encode()

# Two rows of city and age, written by xlwt.
XLS = zlib.decompress(
    base64.b64decode(
        "eNrtWE1oE0EU/maTbX5o0qSmQiuUUGjV2kvx4qWuCtqTIfaiiKDbdpGlIZEll3qotTVHQfCkeCn04qXqxR/0oDcFoaIHQRASPXoS"
        "FDy02b55mcVUc2jAFpX5lvnm7XtvZl523sxm9s1qurr0oK+GX3AYIdT9GDqadIJKLLhJgey+L8WgjlLxNf4pxKI0kR0mniZeR+Qc"
        "yvmuwcD98Ati4BOVc7iEXKnoZHcQxzgGW8gYxogF7pAmiV6Oqpt5inkX8z32fMZ8hDXXmcfItyrOYtXKDR9SWXzGGGBbErLfR9zm"
        "A2tG0YOXMouv3BANXxNHPdcu/J2G/nAnlkHzNu4UHc8uVJGhCVzGdz8LfAtW6vOs1u+sXoD0PzbrIy30N40wMA//Aid4BQm8CkmL"
        "iXzBLo6uYRDkEJQptzxLZvuiQzzhlmjec27Z8UpuXG7MvJBTmxZyghO8k3gaXSynOc1TtFWv3f369uRk3jrPmnnevBtb/KCMCj6u"
        "yhbUOMkWDox9h5kPMC9wr3tY7mPOUPRUD+V7lHBikX2usXWIxjnIeGftbZL3kVz5cupxf+WztZ/klfHa5czKe2sJA/TKmab28lrE"
        "iBgRt29JPLGCWqjt4CNz729bQ9RIqdh99R7rwjriLKaZG3fy6QjlL1r4C/aXPc4ZcY4njTnlb7TwN9g/pPwbT39BvlqNbjyURtqo"
        "fiIODQ0NDQ0NDQ0NjW2HUH/qQ+qcYaqjQ0R911mnUtefSf5bTKBEV5kOpsdRpNrDbFv5sxumCPoSW2wTfC+UOE2je5jBJMcx03b+"
        "0tFPNP+eLTdM/bkl1O749Xbi3ObxNwC0WsYM"
    )
)


def written(write):
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def zipped(**members):
    def write(out):
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return written(write)


def xlsx(**sheets):
    """A workbook by hand: text cells inline, numbers as they are, dates with the style of a date."""
    names = list(sheets)
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": "<Relationships xmlns="
        f'"http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" Type="{kinds}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kinds}"><sheets>'
        + "".join(f'<sheet name="{n}" sheetId="{i}" r:id="s{i}"/>' for i, n in enumerate(names, 1))
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(
            f'<Relationship Id="s{i}" Type="{kinds}/worksheet" Target="worksheets/s{i}.xml"/>'
            for i, _ in enumerate(names, 1)
        )
        + f'<Relationship Id="st" Type="{kinds}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>',
    }
    for number, rows in enumerate(sheets.values(), 1):
        body = "".join(
            f'<row r="{r}">'
            + "".join(cell(f"{chr(64 + c)}{r}", value) for c, value in enumerate(row, 1))
            + "</row>"
            for r, row in enumerate(rows, 1)
        )
        members[f"xl/worksheets/s{number}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{body}</sheetData></worksheet>'
        )
    return zipped(**members)


def cell(place, value):
    if value is None:
        return ""
    if isinstance(value, dt.date):
        return f'<c r="{place}" s="1"><v>{(value - dt.date(1899, 12, 30)).days}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


ROWS = [
    ["nome", "idade", "dia", "codigo", "peso"],
    ["SECRET Ana", 31, dt.date(2020, 2, 29), "007", 1.5],
    ["SECRET Bia", 32, dt.date(2021, 1, 1), 7, 2],
    [None, None, None, None, None],
    ["SECRET Eva", None, None, "x", None],
]
ODS = zipped(
    mimetype="application/vnd.oasis.opendocument.spreadsheet",
    **{
        "META-INF/manifest.xml": "<manifest/>",
        "content.xml": '<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
        'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
        '<office:body><office:spreadsheet><table:table table:name="S">'
        '<table:table-row><table:table-cell office:value-type="string"><text:p>city</text:p></table:table-cell></table:table-row>'
        '<table:table-row><table:table-cell office:value-type="string"><text:p>Rio</text:p></table:table-cell></table:table-row>'
        "</table:table></office:spreadsheet></office:body></office:document-content>",
    },
)


def statistics_file(tmp_path, ending):
    frame = FRAME.with_columns(pl.col("dia").cast(pl.String)).to_pandas()
    path = tmp_path / f"whole.{ending}"
    write = {"sav": pyreadstat.write_sav, "dta": pyreadstat.write_dta, "xpt": pyreadstat.write_xport}[ending]
    write(frame, str(path))
    return path.read_bytes()


def put(tmp_path, data, name="t.csv"):
    path = tmp_path / name
    path.write_bytes(data)
    return path


# What is read


@pytest.mark.parametrize("ending", ["csv", "xlsx", "dat", "parquet", "gz"])
@pytest.mark.parametrize("write", ["write_parquet", "write_ipc", "write_ipc_stream"])
def test_columns_are_read_with_their_types_whatever_the_ending(tmp_path, write, ending):
    table = read_table(put(tmp_path, written(getattr(FRAME, write)), f"t.{ending}"))
    assert table.frame.equals(FRAME)


def test_categories_and_times_survive_parquet(tmp_path):
    frame = pl.DataFrame(
        {
            "c": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
            "t": [dt.datetime(2020, 1, 1, 5)] * 3,
            "b": [True, False, None],
            "u": pl.Series([1, 2, 3], dtype=pl.UInt8),
        }
    )
    read = read_table(put(tmp_path, written(frame.write_parquet))).frame
    assert read.schema == frame.schema and read.cast({"c": pl.String}).equals(frame.cast({"c": pl.String}))


def test_a_workbook_keeps_texts_numbers_and_dates(tmp_path):
    table = read_table(put(tmp_path, xlsx(Plan1=ROWS, Vazia=[]), "t.csv"))
    assert table.rows == 3  # a row without a cell is nobody
    assert table.frame.schema == {
        "nome": pl.String,
        "idade": pl.Int64,
        "dia": pl.Date,
        "codigo": pl.String,
        "peso": pl.Float64,
    }
    assert table.frame["codigo"].to_list() == ["007", "7", "x"]
    assert table.frame["dia"][0] == dt.date(2020, 2, 29)


def test_which_of_several_sheets_is_asked_not_guessed(tmp_path):
    path = put(tmp_path, xlsx(A=[["x"], ["1"]], B=[["y"], [2]], C=[]), "t.xlsx")
    with pytest.raises(TableError, match="2 sheets with rows: 'A', 'B'"):
        read_table(path)
    assert read_table(path, sheet="B").frame.columns == ["y"]
    with pytest.raises(TableError, match="no sheet of that name"):
        read_table(path, sheet="D")
    with pytest.raises(TableError, match="no sheets"):
        read_table(put(tmp_path, written(FRAME.write_parquet)), sheet="A")


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([["a", "a"], [1, 2]], "more than once"),
        ([["Ana", 31], ["Bia", 32]], "header"),
        ([["a", "b"]], "no rows"),
    ],
)
def test_the_header_of_a_sheet_is_checked_like_any_other(tmp_path, rows, word):
    with pytest.raises(TableError, match=word) as caught:
        read_table(put(tmp_path, xlsx(S=rows), "t.xlsx"))
    assert "Ana" not in str(caught.value)


def test_old_and_open_spreadsheets_are_read(tmp_path):
    old = read_table(put(tmp_path, XLS, "t.xls")).frame
    assert old.to_dict(as_series=False) == {"city": ["Rio", "Niteroi"], "age": [31, 32]}
    assert read_table(put(tmp_path, ODS, "t.ods")).frame["city"].to_list() == ["Rio"]


@pytest.mark.parametrize("ending", ["sav", "dta", "xpt"])
def test_statistics_files_are_read_with_whole_numbers_as_such(tmp_path, ending):
    frame = read_table(put(tmp_path, statistics_file(tmp_path, ending), "t.csv")).frame
    assert frame["idade"].to_list() == FRAME["idade"].to_list() and frame.schema["idade"] == pl.Int64
    assert frame["nome"].to_list() == FRAME["nome"].to_list()
    assert frame["peso"].null_count() == FRAME["peso"].null_count()


def test_codes_of_a_statistics_file_stay_codes(tmp_path):
    path = tmp_path / "t.sav"
    frame = pl.DataFrame({"sexo": [1, 2, 1]}).to_pandas()
    pyreadstat.write_sav(frame, str(path), variable_value_labels={"sexo": {1: "homem", 2: "mulher"}})
    assert read_table(path).frame["sexo"].to_list() == [1, 2, 1]


@pytest.mark.parametrize("name", ["t.csv.gz", "t.gz", "t.csv"])
def test_a_packed_table_is_unpacked(tmp_path, name):
    assert read_table(put(tmp_path, gzip.compress(CSV[:200]) + gzip.compress(CSV[200:]), name)).rows == 200
    members = {"dados/t.csv": CSV, "__MACOSX/._t.csv": b"x", ".DS_Store": b"x"}
    assert read_table(put(tmp_path, zipped(**members), name.replace("gz", "zip"))).rows == 200
    assert read_table(put(tmp_path, gzip.compress(written(FRAME.write_parquet)), name)).rows == 200


def test_an_archive_of_several_files_or_layers_is_refused(tmp_path):
    with pytest.raises(TableError, match="2 files"):
        read_table(put(tmp_path, zipped(a=CSV, b=CSV), "t.zip"))
    with pytest.raises(TableError, match="0 files"):
        read_table(put(tmp_path, zipped(), "t.zip"))
    with pytest.raises(TableError, match="packed twice"):
        read_table(put(tmp_path, gzip.compress(gzip.compress(CSV)), "t.gz"))


@pytest.mark.parametrize("pack", [gzip.compress, lambda data: zipped(t=data)])
def test_a_file_made_to_fill_the_memory_is_refused(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(packed, "_FREE_BYTES", 1 << 20)
    monkeypatch.setattr(packed, "_MOST_RATIO", 100)
    bomb = pack(b"a,b\n" + b"1,2\n" * 1_000_000)
    with pytest.raises(TableError, match="unpacks to more than"):
        read_table(put(tmp_path, bomb))


def test_a_missing_library_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"velado\[files\]"):
        read_table(put(tmp_path, XLS, "t.xls"))
    with pytest.raises(MissingExtra, match="pyreadstat"):
        read_table(put(tmp_path, b"$FL2" + bytes(200), "t.sav"))


# What is named


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"SQLite format 3\x00" + bytes(100), "SQLite"),
        (b"%PDF-1.7\n%\xe2\xe3", "PDF"),
        (b'[{"nome": "SECRET"}]', "JSON"),
        (b'  {"nome": "SECRET"}', "JSON"),
        (b"{\\rtf1\\ansi SECRET}", "RTF"),
        (b"<!DOCTYPE html><table><tr><td>SECRET", "HTML"),
        (b"\xef\xbb\xbf<html><body>SECRET", "HTML"),
        (b'<?xml version="1.0"?><Workbook>SECRET', "XML"),
        (zipped(**{"word/document.xml": "SECRET"}), "Word"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + "EncryptedPackage".encode("utf-16-le"), "password"),
        (bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "no workbook"),
        (gzip.compress(b"RDX3\nX\n\x00\x00\x00SECRET", mtime=0), "R objects"),
        (b"\x03\x79\x01\x1f" + b"\x02\0\0\0" + b"\x41\0\x0b\0" + bytes(20) + b"NOME" + bytes(60), "dBase"),
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "picture"),
        (b"FEA1" + bytes(20), "Feather"),
    ],
    ids=lambda part: part if isinstance(part, str) else "bytes",
)
def test_what_is_no_table_is_named_with_the_way_out(tmp_path, data, word):
    with pytest.raises(TableError, match=word) as caught:
        read_table(put(tmp_path, data))
    assert "SECRET" not in str(caught.value) and caught.value.fix.endswith(".")


@pytest.mark.parametrize(
    "header", ["PAR1,b", "ORCID,b", "BZh,b", "[id],b", "{x},b", "GIF89,b", "FEA1,$FL2", "MM,II"]
)
def test_a_header_that_begins_like_a_signature_is_still_a_header(tmp_path, header):
    assert read_table(put(tmp_path, f"{header}\nx,y\n".encode())).frame.columns == header.split(",")


# Encodings

WORDS = "município;observação;mês\nSão João;não há;março\nViçosa;“às vezes” – D’Ávila nº 3;avó\n"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (WORDS.encode(), "utf-8"),
        (WORDS.encode("utf-8-sig"), "utf-8"),
        (WORDS.encode("cp1252"), "cp1252"),
        (WORDS.splitlines()[0].encode("latin-1") + b"\na;b;c\n", "cp1252"),
        ("niño;año\nPeña;¿qué?\n".encode("latin-1"), "cp1252"),
        (WORDS.encode("utf-16"), "utf-16"),
        (b"\xfe\xff" + WORDS.encode("utf-16-be"), "utf-16"),
        (WORDS.encode("utf-16-le"), "utf-16-le"),
        (WORDS.encode("utf-16-be"), "utf-16-be"),
        (WORDS.encode("utf-32"), "utf-32"),
    ],
)
def test_the_encoding_is_found_and_proposed(tmp_path, data, found):
    path = put(tmp_path, data)
    table = read_table(path)
    assert table.encoding == found and "".join(table.frame.columns) in WORDS.replace(";", "") + "niñoaño"
    proposed = schema_toml(inspect(table))
    assert (f'encoding = "{found}"' in proposed) == (found != "utf-8")
    schema = put(tmp_path, proposed.encode(), "schema.toml")
    assert read_table(path, read_schema(schema)).frame.equals(table.frame)


@pytest.mark.parametrize("encoding", ["cp850", "cp437", "mac-roman"])
@pytest.mark.parametrize(
    "text", ["nome\nJosé\nJoão\nSebastião\n", "NOME\nJOSÉ\nANDRÉ\n", "cidade\nBelém\nMaceió\n"]
)
def test_old_code_pages_are_not_taken_for_windows(text, encoding):
    with pytest.raises(TableError, match="not UTF-8"):
        found_encoding(text.encode(encoding, "ignore"), "t.csv")


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("a\nJosé\n".encode() + "João\n".encode("latin-1"), 3),
        ("a\nb\nJo\x81o\n".encode("latin-1"), 3),
        ("имя\nАнна\nБорис\n".encode("cp1251"), 1),
        ("名前\n田中\n".encode("shift-jis"), 2),
    ],
)
def test_in_doubt_the_text_is_refused_with_the_line(data, line):
    with pytest.raises(TableError, match=f"line {line}\\."):
        found_encoding(data, "t.csv")


def test_a_named_encoding_wins(tmp_path):
    path = put(tmp_path, "a;b\nJosé;é\n".encode("cp850"))
    assert read_table(path, encoding="cp850").frame.item(0, 0) == "José"
    schema = Schema({"a": Column("a"), "b": Column("b")}, encoding="cp850")
    assert read_table(path, schema).frame.item(0, 1) == "é"
    latin = put(tmp_path, "a;b\nJosé;é\n".encode("latin-1"))
    with pytest.raises(TableError, match="not utf-8"):
        read_table(latin, encoding="utf-8")
    with pytest.raises(TableError, match="written in UTF-8"):
        read_table(put(tmp_path, "a;b\nJosé;é\n".encode()), encoding="latin-1")


# Damage


def spoiled(data, seed, count):
    """*data* cut short, or with some bytes replaced."""
    rng = random.Random(seed)
    for number in range(count):
        if number % 3 == 0:
            yield data[: rng.randrange(len(data))]
            continue
        out = bytearray(data)
        for _ in range(rng.choice([1, 1, 4, 30])):
            out[rng.randrange(len(out))] = rng.randrange(256)
        yield bytes(out)


def read_or_refused(path, data):
    path.write_bytes(data)
    try:
        frame = read_table(path).frame
    except VeladoError as error:
        assert "SECRET" not in str(error) and error.__cause__ is None
        return False
    frame.with_columns(pl.all().cast(pl.String))  # a cell that cannot be written would end the process here
    return True


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (written(FRAME.write_parquet), 500),
        (written(FRAME.write_ipc), 500),
        (written(lambda out: FRAME.write_ipc(out, compression="zstd")), 300),
        (written(FRAME.write_ipc_stream), 500),
        (gzip.compress(CSV), 500),
        (zipped(t=CSV), 500),
    ],
    ids=["parquet", "arrow", "arrow-zstd", "stream", "gzip", "zip"],
)
def test_damaged_bytes_are_read_or_refused_in_words(tmp_path, data, count):
    results = [read_or_refused(tmp_path / "t.bin", bad) for bad in spoiled(data, 5, count)]
    assert not all(results)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xlsx", "xls", "ods", "sav", "dta", "xpt"])
def test_damaged_foreign_files_are_read_or_refused_in_words(tmp_path, kind):
    made = {"xlsx": lambda: xlsx(S=ROWS), "xls": lambda: XLS, "ods": lambda: ODS}
    data = made[kind]() if kind in made else statistics_file(tmp_path, kind)
    for bad in spoiled(data, 7, 12):
        read_or_refused(tmp_path / "t.bin", bad)


def test_a_workbook_cut_short_or_with_a_flipped_byte_is_one_sentence(tmp_path):
    whole = xlsx(S=ROWS)
    path = tmp_path / "t.xlsx"
    for cut in range(10, len(whole) - 1, 97):
        assert not read_or_refused(path, whole[:cut])
    place = whole.index(b"xl/worksheets/s1.xml") + 60
    with pytest.raises(TableError, match="not a readable xlsx"):
        read_table(put(tmp_path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :], "t.xlsx"))


def test_nothing_is_printed_about_a_damaged_file(tmp_path):
    """Some of these files make Polars' own reader panic, which prints to the terminal and may end the process."""
    code = (
        "import sys; from pathlib import Path; from velado.data.io import read_table\n"
        "from velado.errors import TableError\n"
        "for path in sorted(Path(sys.argv[1]).iterdir()):\n"
        "    try: read_table(path)\n"
        "    except TableError: pass\n"
    )
    for name, write in (
        ("p", FRAME.write_parquet),
        ("a", lambda out: FRAME.write_ipc(out, compression="zstd")),
    ):
        for number, bad in enumerate(spoiled(written(write), 1, 300)):
            put(tmp_path, bad, f"{name}{number}")
    put(tmp_path, XLS[:700] + b"\xff" * 300 + XLS[1000:], "bad.xls")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


PREFIXES = [
    b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff\x10\0\0\0", b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b\x08\0", b"\xff\xfe",
    b"\xfe\xff", b"\xef\xbb\xbf", b"%PDF-", b"SQLite format 3\0", b"{", b"[", b"<", b"a,b\n", b'"', b"",
]  # fmt: skip


@pytest.mark.parametrize("prefix", PREFIXES)
def test_random_bytes_behind_a_signature_are_refused_in_words(tmp_path, prefix):
    rng = random.Random(11)
    for _ in range(60):
        size = rng.choice([0, 3, 40, 400, 5000])
        letters = rng.choice([256, 128, 16])
        read_or_refused(tmp_path / "t", prefix + bytes(rng.randrange(letters) for _ in range(size)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "prefix",
    [b"$FL2", b"<stata_dta>", b"q\x02\x01\0", b"HEADER RECORD*******LIB", bytes.fromhex("d0cf11e0a1b11ae1")],
)
def test_random_bytes_behind_a_foreign_signature_are_refused_in_words(tmp_path, prefix):
    rng = random.Random(12)
    for size in (0, 40, 5000):
        tail = "Workbook".encode("utf-16-le") if prefix[0] == 0xD0 else b""
        read_or_refused(tmp_path / "t", prefix + tail + rng.randbytes(size))


def test_an_ending_that_the_content_does_not_keep_is_said(tmp_path):
    for name in ("t.parquet", "t.xlsx", "t.sav", "t.gz"):
        with pytest.raises(TableError, match="not a readable"):
            read_table(put(tmp_path, b"a,b\n1,2\n", name))


def test_a_date_outside_the_calendar_is_refused_not_written(tmp_path):
    frame = pl.DataFrame({"d": pl.Series([0, 10**9], dtype=pl.Int32).cast(pl.Date)})
    with pytest.raises(TableError, match="years 1 to 9999"):
        read_table(put(tmp_path, written(frame.write_parquet)))


def test_every_format_has_a_way_out():
    assert all(one.out.endswith(".") for one in FORMATS.values())
    assert format_of(b"a,b\n1,2\n") is None
