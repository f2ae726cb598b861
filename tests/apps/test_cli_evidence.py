"""`velado evidence`: make, verify, key; what a stranger types, and what is refused with which exit code."""

import json
from pathlib import Path

import click
import pytest

from velado.apps.cli.main import command, run
from velado.data.samples import hospital_csv, hospital_schema
from velado.report.evidence.laws import LAWS
from velado.study.run import publish

KEY = bytes(range(48, 96))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the owner's key, a release and its pack."""
    folder = tmp_path_factory.mktemp("evidence")
    (folder / "owner.key").write_bytes(KEY)
    key = folder / "owner.key"
    publish(hospital_csv(), hospital_schema(), "mondrian", k=5, out=folder / "out", key=key)
    pack = folder / "pack.zip"
    told = ["--purpose", "dengue study", "--key", str(folder / "owner.key"), "--quiet"]
    assert run(["evidence", str(folder / "out"), "--law", "lgpd", "-o", str(pack), *told]) == 0
    return folder


def test_the_flag_takes_every_law_that_packs_are_read_by() -> None:
    group = command().commands["evidence"]
    assert isinstance(group, click.Group)
    (asked,) = (one for one in group.commands["make"].params if one.name == "law")
    assert asked.type.get_metavar(asked) == "|".join(LAWS)


@pytest.mark.slow
def test_a_pack_is_made_and_checked_against_table_key_and_people(made, capsys) -> None:
    assert (
        run(["evidence", "key", "--key", str(made / "owner.key"), "-o", str(made / "owner.pub"), "--json"])
        == 0
    )
    public = json.loads(capsys.readouterr().out)["public_key"]
    table = ["--table", str(made / "out/release/table.csv")]
    people = ["--original", str(hospital_csv()), "--rows", str(made / "out/private/rows.csv")]
    for key in (public, str(made / "owner.pub")):
        args = ["evidence", "verify", str(made / "pack.zip"), *table, *people, "--key", key, "--json"]
        assert run(args) == 0
        found = json.loads(capsys.readouterr().out)
        assert found["key_pinned"] and found["people_counted"] and found["every_promise_holds"]
        assert found["table_counted"]["rows"] == 2000 and found["unit"] == "people"


def test_without_a_key_the_limits_of_the_proof_are_said_in_both_languages(made, capsys) -> None:
    assert run(["evidence", "verify", str(made / "pack.zip")]) == 0
    assert "not who signed" in capsys.readouterr().out
    assert run(["evidence", "verify", str(made / "pack.zip"), "--lang", "pt"]) == 0
    assert "não quem assinou" in capsys.readouterr().out


def test_another_key_table_or_file_leaves_with_eleven(made, tmp_path, capsys) -> None:
    pack = str(made / "pack.zip")
    other = tmp_path / "table.csv"
    other.write_text((made / "out/release/table.csv").read_text("utf-8") + "\n", "utf-8")
    assert run(["evidence", "verify", pack, "--key", "ab" * 32]) == 11
    assert run(["evidence", "verify", pack, "--table", str(other)]) == 11
    (tmp_path / "bad.zip").write_bytes((made / "pack.zip").read_bytes()[:-1])
    assert run(["evidence", "verify", str(tmp_path / "bad.zip")]) == 11
    assert run(["evidence", "verify", str(tmp_path / "none.zip")]) == 3
    assert run(["evidence", "verify", pack, "--key", "nonsense"]) == 2
    assert "What to do" in capsys.readouterr().err


def test_a_pack_is_not_overwritten_and_a_law_must_be_known(made, tmp_path, capsys) -> None:
    out, key = str(made / "out"), ["--key", str(made / "owner.key")]
    assert run(["evidence", out, "--law", "lgpd", "-o", str(made / "pack.zip"), *key]) == 5
    assert run(["evidence", out, "--law", "lgdp", "-o", str(tmp_path / "p.zip"), *key]) == 2
    assert "Did you mean 'lgpd'?" in capsys.readouterr().err
    assert run(["evidence", str(tmp_path), "--law", "gdpr", "-o", str(tmp_path / "p.zip"), *key]) == 3
    assert not (tmp_path / "p.zip").exists()


def test_the_page_is_written_anew_for_who_trusts_figures_alone(made, tmp_path) -> None:
    page = tmp_path / "page.html"
    assert run(["evidence", "verify", str(made / "pack.zip"), "--page", str(page), "--quiet"]) == 0
    assert "Evidence, not legal advice." in page.read_text("utf-8")
    assert run(["evidence", "verify", str(made / "pack.zip"), "--page", str(page), "--quiet"]) == 5
