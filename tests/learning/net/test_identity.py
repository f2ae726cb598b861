"""A party's keys: private, encrypted, bound together, and known to the job by their public half."""

import datetime
import os
import stat
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from velado.errors import InputError, KeyRefused, OutputError, ParameterError, SchemaError
from velado.learning.net._mutual_tls import Pins, check_validity, parse_address
from velado.learning.net.identity import (
    CERTIFICATE,
    SECRETS,
    make_identity,
    open_identity,
    read_job,
    read_passphrase,
    read_public,
)
from velado.learning.net.runner import read_paillier
from velado.learning.regression.job import Job, Party

from .parties import LOG2_N, PASSPHRASE, Consortium

CLINIC = Party("clinic", "client")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    make_identity(tmp_path / "clinic", CLINIC, PASSPHRASE, log2_n=LOG2_N)
    return tmp_path / "clinic"


def test_only_the_owner_can_read_anything(folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(p.name for p in folder.iterdir()) == [
        CERTIFICATE,
        "clinic.party.toml",
        "jobs.register",
        SECRETS,
        "tls.key.pem",
    ]


def test_the_keys_open_with_the_passphrase_alone(folder: Path) -> None:
    identity = open_identity(folder, PASSPHRASE)
    public = read_public(folder)
    assert (identity.name, identity.signing_public().hex()) == ("clinic", public.signing_key)
    with pytest.raises(KeyRefused, match="passphrase"):
        open_identity(folder, PASSPHRASE + "x")
    assert b"ENCRYPTED" in (folder / "tls.key.pem").read_bytes()


def test_no_secret_is_shown_in_a_repr(folder: Path) -> None:
    identity = open_identity(folder, PASSPHRASE)
    assert identity.tls_password.decode() not in repr(identity)
    assert "journal_key" not in repr(identity)


def test_the_public_part_is_an_entry_of_a_job(folder: Path) -> None:
    (entry,) = tomllib.loads((folder / "clinic.party.toml").read_text())["parties"]
    assert set(entry) == {"name", "role", "certificate", "signing_key"}
    assert Party(**entry) == read_public(folder)


@pytest.mark.parametrize("file", [SECRETS, CERTIFICATE, "clinic.party.toml"])
def test_files_of_two_identities_cannot_be_mixed(folder: Path, tmp_path: Path, file: str) -> None:
    other = tmp_path / "other"
    make_identity(other, replace(CLINIC, name="other"), PASSPHRASE, log2_n=LOG2_N)
    source = other / ("other.party.toml" if file.endswith("toml") else file)
    (folder / file).write_bytes(source.read_bytes())
    with pytest.raises(KeyRefused):
        open_identity(folder, PASSPHRASE)


def test_any_changed_byte_of_the_sealed_file_is_noticed_and_asks_for_no_memory(folder: Path) -> None:
    data = (folder / SECRETS).read_bytes()
    for at in [0, 8, 9, 12, 30, 40, len(data) - 1]:
        changed = bytearray(data)
        changed[at] ^= 0x80
        (folder / SECRETS).write_bytes(changed)
        with pytest.raises(KeyRefused):
            open_identity(folder, PASSPHRASE)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_secrets_that_others_can_read_are_refused(folder: Path) -> None:
    (folder / SECRETS).chmod(0o640)
    with pytest.raises(KeyRefused, match="read by others"):
        open_identity(folder, PASSPHRASE)


def test_keys_are_never_overwritten(folder: Path) -> None:
    before = (folder / SECRETS).read_bytes()
    with pytest.raises(OutputError):
        make_identity(folder, CLINIC, PASSPHRASE, log2_n=LOG2_N)
    assert (folder / SECRETS).read_bytes() == before


@pytest.mark.parametrize("name", ["", "a/b", ".hidden", "x\n", "x" * 201])
def test_a_name_that_could_not_be_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ParameterError):
        make_identity(tmp_path / "k", replace(CLINIC, name=name), PASSPHRASE, log2_n=LOG2_N)


def test_no_passphrase_and_no_endless_certificate(tmp_path: Path) -> None:
    with pytest.raises(KeyRefused):
        make_identity(tmp_path / "k", CLINIC, "", log2_n=LOG2_N)
    with pytest.raises(ParameterError):
        make_identity(tmp_path / "k", CLINIC, PASSPHRASE, days=0, log2_n=LOG2_N)


def test_a_certificate_is_refused_before_and_after_its_time(folder: Path) -> None:
    der = open_identity(folder, PASSPHRASE).certificate
    now = datetime.datetime.now(datetime.UTC)
    check_validity(der, "clinic")
    with pytest.raises(KeyRefused, match="expired on"):
        check_validity(der, "clinic", now + datetime.timedelta(days=366))
    with pytest.raises(KeyRefused, match="valid from"):
        check_validity(der, "clinic", now - datetime.timedelta(days=1))
    with pytest.raises(KeyRefused, match="not a certificate"):
        check_validity(b"no", "clinic")


def test_an_address_is_a_host_and_a_port() -> None:
    assert parse_address("a.example:1", "a") == ("a.example", 1)
    assert parse_address("[::1]:8443", "a") == ("::1", 8443)
    for wrong in ("", "a", "a:", ":1", "a:0", "a:65536", "a:-1", "a:x", "a:١", "a..b:1", "a:" + "9" * 9999):
        with pytest.raises(SchemaError):
            parse_address(wrong, "a")


def changed(job: Job, name: str, **values: str) -> Job:
    return replace(job, parties=tuple(replace(p, **values) if p.name == name else p for p in job.parties))


def test_a_job_must_pin_every_party_and_each_differently(group: Consortium) -> None:
    job = group.job
    hub = job.party("hub")
    for values in (
        {"certificate": ""},
        {"signing_key": "ab"},
        {"certificate": hub.certificate},
        {"signing_key": hub.signing_key},
        {"certificate": "no base64!"},
    ):
        with pytest.raises(SchemaError):
            Pins(changed(job, "clinic-1", **values))
    assert all(party.address == "" for party in job.parties if party.role != "evaluator")
    with pytest.raises(SchemaError, match="not host:port"):
        Pins(changed(job, "hub", address=""))


def test_a_party_the_job_knows_otherwise_does_not_start(group: Consortium) -> None:
    job, identity = group.job, group.identity("clinic-0")
    Pins(job).check_own(identity, "client", job)
    with pytest.raises(SchemaError, match="is client"):
        Pins(job).check_own(identity, "provider", job)
    other = changed(job, "clinic-0", certificate="abcd" * 32)
    with pytest.raises(KeyRefused, match="other keys"):
        Pins(other).check_own(identity, "client", other)


def test_a_stored_key_of_another_size_is_refused(tmp_path: Path, group: Consortium) -> None:
    make_identity(tmp_path / "v", Party("vault", "provider"), PASSPHRASE, paillier_bits=2048, log2_n=LOG2_N)
    identity = open_identity(tmp_path / "v", PASSPHRASE)
    assert read_paillier(identity, PASSPHRASE, group.job).public.bits == 2048
    with pytest.raises(KeyRefused, match="2048 bits"):
        read_paillier(identity, PASSPHRASE, replace(group.job, key_bits=3072))
    assert read_paillier(group.identity("vault"), PASSPHRASE, group.job) is None


def test_the_job_file_is_the_job(group: Consortium) -> None:
    assert read_job(group.folder / "job.toml").digest() == group.job.digest()


@pytest.mark.parametrize("data", [b"", b"a = ", b"\xff\xfe", b"name = 'x'", b"[" * 5000, b"#" * (2 << 20)])
def test_a_file_that_is_no_job_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "job.toml").write_bytes(data)
    with pytest.raises(InputError):
        read_job(tmp_path / "job.toml")
    with pytest.raises(InputError):
        read_job(tmp_path / "none.toml")


def test_a_passphrase_is_the_line_without_its_end(tmp_path: Path) -> None:
    (tmp_path / "p").write_bytes("três palavras \r\n".encode())
    assert read_passphrase(tmp_path / "p") == "três palavras "
    with pytest.raises(KeyRefused):
        read_passphrase(tmp_path / "none")
