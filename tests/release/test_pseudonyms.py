"""Pseudonyms are the same everywhere for one key and project, and tell nothing without the key."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from velado.data.keys import Key, new_key
from velado.data.schema import Schema
from velado.data.table import Table
from velado.errors import ParameterError, SchemaError, TableError
from velado.randomness import secure
from velado.release.pseudonyms import pseudonymize, pseudonyms_of

SECRET = bytes(range(7, 47))
KEY = Key.of(SECRET)
OTHER = Key.of(bytes(range(100, 140)))
SCHEMA = Schema.from_dict(
    {
        "table": {"missing_values": ["", "NA"]},
        "columns": {
            "cpf": {"role": "identifier", "kind": "text", "person": True},
            "age": {"role": "quasi", "kind": "numeric"},
        },
    }
)


def table(cpf, **columns) -> Table:
    dtype = pl.String if all(isinstance(cell, str | None) for cell in cpf) else None
    frame = pl.DataFrame({"cpf": pl.Series(cpf, dtype=dtype), "age": [str(20 + i) for i in range(len(cpf))]})
    return Table.of(frame, SCHEMA)


def expected(text: str, secret: bytes = SECRET, namespace: str = "default") -> str:
    """The definition, written out with the standard library alone."""
    own = hmac.new(secret, b"velado pseudonym 1\0" + namespace.encode(), hashlib.sha256).digest()
    digest = hmac.new(own, text.encode(), hashlib.sha256).digest()
    return base64.b32encode(digest[:10]).decode()


@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=20), unique=True, max_size=30))
def test_a_pseudonym_is_the_cut_keyed_hash_of_the_text(texts):
    assert pseudonyms_of(texts, KEY) == [expected(text) for text in texts]


def test_the_same_person_has_one_pseudonym_in_every_file_of_a_project():
    first, _ = pseudonymize(table(["111.444.777-35", "529.982.247-25"]), ["cpf"], KEY, normalize="digits")
    second, _ = pseudonymize(table(["52998224725", "  11144477735 "]), ["cpf"], KEY, normalize="digits")
    assert first.frame["cpf"].to_list() == second.frame["cpf"].to_list()[::-1]
    assert first.frame["cpf"].n_unique() == 2


@pytest.mark.parametrize(
    ("spellings", "way"),
    [
        (["012.345.678-90", "1234567890"], "cpf"),
        (["000.000.000-00", "00000000000"], "digits"),
        (["José ", "Jose\u0301"], "trim"),
        (["P1", " p1", "Ｐ1", "P\u200b1\u00a0"], "normal"),
        (["7", "07", "7.0", "+7", " 7 "], "normal"),
    ],
)
def test_spellings_of_one_identifier_are_one(spellings, way):
    both, mapping = pseudonymize(table(spellings), ["cpf"], KEY, normalize=way)
    assert both.frame["cpf"].n_unique() == 1
    assert sorted(mapping["original"].to_list()) == sorted(spellings)
    exact, _ = pseudonymize(table(spellings), ["cpf"], KEY, normalize="exact")
    assert exact.frame["cpf"].n_unique() == len(spellings)


def test_other_keys_and_other_projects_have_other_pseudonyms():
    people = table([f"{i:011d}" for i in range(200)])
    runs = [
        pseudonymize(people, ["cpf"], KEY)[0],
        pseudonymize(people, ["cpf"], OTHER)[0],
        pseudonymize(people, ["cpf"], KEY, namespace="dengue")[0],
    ]
    seen = [set(run.frame["cpf"].to_list()) for run in runs]
    assert all(len(names) == 200 for names in seen)
    assert not seen[0] & seen[1] and not seen[0] & seen[2] and not seen[1] & seen[2]


def test_a_pseudonym_cannot_be_computed_without_the_key():
    made, _ = pseudonymize(table(["52998224725"]), ["cpf"], KEY)
    name = made.frame["cpf"][0]
    guesses = {
        base64.b32encode(hashlib.sha256(prefix + b"52998224725").digest()[:10]).decode()
        for prefix in (b"", b"default", b"velado pseudonym 1\0default", b"velado pseudonym 1\0default\0")
    } | {expected("52998224725", secret) for secret in (b"", b"\0" * 32, KEY.fingerprint.encode())}
    assert name not in guesses and len(name) == 16 and name.isalnum()


def test_blanks_stay_blank_and_other_columns_stay_as_they_were():
    before = table(["a", "", None, "NA", "   ", "a"])
    after, mapping = pseudonymize(before, ["cpf"], KEY)
    name = expected("A")  # the normal form does not tell case
    assert after.frame["cpf"].to_list() == [name, "", None, "NA", None, name]
    assert after.frame["age"].equals(before.frame["age"])
    assert after.is_missing("cpf").to_list() == [False, True, True, True, True, False]
    assert mapping.to_dicts() == [{"column": "cpf", "original": "a", "pseudonym": name}]
    assert after.schema.columns["cpf"].role == "identifier" and after.schema.person is not None


def test_the_mapping_undoes_the_pseudonyms():
    people = table([f" {i}-0" for i in range(50)] * 2)
    after, mapping = pseudonymize(people, ["cpf"], KEY, normalize={"cpf": "digits"})
    back = dict(zip(mapping["pseudonym"], mapping["original"], strict=True))
    assert [back[name] for name in after.frame["cpf"]] == people.frame["cpf"].to_list()


def test_whole_numbers_are_the_same_identifier_as_their_text():
    text, _ = pseudonymize(table(["123", "45"]), ["cpf"], KEY)
    for cells in ([123, 45], [123.0, 45.0]):
        assert pseudonymize(table(cells), ["cpf"], KEY)[0].frame["cpf"].equals(text.frame["cpf"])
    with pytest.raises(TableError, match="fraction"):
        pseudonymize(table([1.5, 2.0]), ["cpf"], KEY)


def test_identifiers_that_would_be_confused_are_refused_without_being_shown():
    for cells, way in ((["secretA", "1"], "digits"), (["123456789012", "1"], "cpf")):
        with pytest.raises(TableError, match="1 distinct value") as caught:
            pseudonymize(table(cells), ["cpf"], KEY, normalize=way)
        assert cells[0] not in str(caught.value)


@pytest.mark.parametrize(
    ("columns", "settings", "error"),
    [
        ([], {}, ParameterError),
        (["cpf", "cpf"], {}, ParameterError),
        (["nobody"], {}, SchemaError),
        (["age"], {}, SchemaError),
        (["cpf"], {"namespace": " "}, ParameterError),
        (["cpf"], {"normalize": "letters"}, ParameterError),
        (["cpf"], {"normalize": {"age": "trim"}}, ParameterError),
    ],
)
def test_what_cannot_be_done_is_said(columns, settings, error):
    with pytest.raises(error):
        pseudonymize(table(["a"]), columns, KEY, **settings)


@pytest.mark.parametrize("weak", [b"", b"x" * 31, b"a" * 64, b"  " + bytes(range(65, 96)) + b"\n"])
def test_a_key_that_could_be_guessed_is_refused_without_being_shown(weak):
    with pytest.raises(ParameterError) as caught:
        Key.of(weak)
    assert not weak or weak.decode() not in str(caught.value)


def test_white_space_around_a_key_does_not_count_and_new_keys_differ():
    content = new_key(secure())
    assert len(content) == 65 and content != new_key(secure())
    assert Key.of(content) == Key.of(content.strip()) == Key.of(b" " + content + b"\r\n")


def test_nothing_that_is_shown_of_a_key_holds_the_key():
    shown = f"{KEY!r} {KEY} {[KEY]}"
    assert KEY.fingerprint in shown and SECRET.decode("latin-1")[:6] not in shown
    assert "secret" not in shown and len(KEY.fingerprint) == 8 != OTHER.fingerprint
    assert hashlib.sha256(SECRET).hexdigest()[:8] != KEY.fingerprint
    after, mapping = pseudonymize(table(["a"]), ["cpf"], KEY)
    written = json.dumps([after.frame.to_dicts(), mapping.to_dicts(), after.schema.to_dict(), repr(after)])
    for form in (SECRET.hex(), base64.b64encode(SECRET).decode(), base64.b32encode(SECRET).decode()[:-8]):
        assert form not in written
