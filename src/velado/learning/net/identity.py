"""A party's keys in a private folder: TLS key and certificate, signing key, and the key its journals are sealed with.

`secrets.sealed` holds the signing key, the journal key and the password of the TLS key, under AES-256-GCM with a key that
scrypt makes of the passphrase; the party's name and certificate are authenticated with it. `tls.key.pem` is encrypted
with that random password, so that guessing it is hopeless and OpenSSL can still load it from the file.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
import ipaddress
import json
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from velado.data.staging import reason_of, write_file
from velado.errors import KeyRefused, OutputError, ParameterError, SchemaError
from velado.learning.crypto import paillier_keys as keyfile
from velado.learning.protocols.protocol import RegressionProtocol
from velado.learning.protocols.protocol_registry import PROTOCOLS
from velado.learning.regression.job import Job, Party
from velado.randomness import Tape
from velado.settings import Setting, checked_argument, parse_toml
from velado.text import say

# Files that only their owner can read, whole or not there; and the job file.

LARGEST_JOB = 1 << 20
LARGEST_SECRET = 1 << 16


def make_private_folder(folder: Path, empty: bool = False) -> Path:
    """*folder* is there and only its owner can enter it; with *empty* it must hold nothing yet.

    >>> oct(make_private_folder(Path("out")).stat().st_mode)[-3:]
    '700'
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if empty and any(folder.iterdir()):
            raise OutputError(
                say("The folder '{folder}' is not empty.", folder=folder.name),
                "Keys in it would be overwritten, and with them every job they belong to.",
                "Choose another folder.",
            )
        folder.chmod(0o700)
    except OSError as error:
        raise OutputError(
            say("'{path}' cannot be written ({reason}).", path=folder.name, reason=reason_of(error)),
            "Nothing was written.",
            "Check the path, the permissions and the space left.",
        ) from None
    return folder


def read_private(path: Path, most: int = LARGEST_SECRET) -> bytes:
    """The bytes of a secret file; one that others may read is refused.

    >>> read_private(write_file(Path("key"), b"secret", private=True))
    b'secret'
    """
    try:
        with path.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            data = stream.read(most + 1)
    except OSError as error:
        raise KeyRefused(
            say("'{path}' cannot be read ({strerror}).", path=path.name, strerror=reason_of(error)),
            "A party without its keys cannot take part.",
            "Give the folder that `velado party keygen` made.",
        ) from None
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise KeyRefused(
            say("'{path}' can be read by others on this machine.", path=path.name),
            "A key that others could copy authenticates nobody.",
            "Run chmod 600 on it, and make new keys if somebody may have seen it.",
        )
    if len(data) > most:
        raise KeyRefused(
            say("'{path}' is too large.", path=path.name),
            "It is not a file of velado.",
            "Give the folder keygen made.",
        )
    return data


def read_passphrase(path: Path) -> str:
    """The passphrase in a file: its text without the line break at the end.

    >>> read_passphrase(write_file(Path("words"), b"four words are enough\\n"))
    'four words are enough'
    """
    try:
        text = path.read_bytes()[:4096].decode("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError):
        raise KeyRefused(
            say("The passphrase file '{path}' cannot be read.", path=path.name),
            "The party's keys are encrypted with it.",
            "Give a readable file with the passphrase as its only line.",
        ) from None
    return text


def random_passphrase() -> str:
    """256 bits that nobody has to remember, for a party that no person starts; sealed with `RANDOM_LOG2_N`.

    >>> len(random_passphrase()), random_passphrase() == random_passphrase()
    (64, False)
    """
    return Tape.fresh_seed().hex()


def read_job(path: Path, protocols: Mapping[str, RegressionProtocol] = PROTOCOLS) -> Job:
    """The job a TOML file describes, with one of *protocols*.

    >>> read_job(write_file(Path("job.toml"), b"format = 9"))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: The job file has a format this version does not know...
    """
    if path.is_file() and path.stat().st_size > LARGEST_JOB:
        raise SchemaError(
            say("The job file '{path}' is larger than {size:,} bytes.", path=path.name, size=LARGEST_JOB),
            "It cannot be a job.",
            "Start from the example in docs/how-to/regress-with-three-hospitals.md.",
        )
    return Job.from_dict(parse_toml(path), protocols)


SECRETS, TLS_KEY, CERTIFICATE, PAILLIER = "secrets.sealed", "tls.key.pem", "certificate.pem", "paillier.key"
MAGIC = b"VELADOID"
VERSION = 1
LOG2_N = keyfile.LOG2_N
RANDOM_LOG2_N = keyfile.RANDOM_LOG2_N
DAYS = 365
CertificateDays = Annotated[int, Setting(ge=1, le=3650)]
"""How long a certificate is valid."""
_SALT, _NONCE = 16, 12
_HEAD = len(MAGIC) + 2 + _SALT + _NONCE


@dataclass(frozen=True)
class Identity:
    """One party's keys, opened. Its repr shows none of them.

    >>> Identity("clinic", Path("keys"), b"", Ed25519PrivateKey.generate(), b"", b"")
    Identity(name='clinic', folder=PosixPath('keys'))
    """

    name: str
    folder: Path
    certificate: bytes = field(repr=False)
    signing: Ed25519PrivateKey = field(repr=False)
    journal_key: bytes = field(repr=False)
    tls_password: bytes = field(repr=False)

    @property
    def certificate_file(self) -> Path:
        """The certificate in PEM."""
        return self.folder / CERTIFICATE

    @property
    def key_file(self) -> Path:
        """The TLS key in PEM, encrypted with `tls_password`."""
        return self.folder / TLS_KEY

    def signing_public(self) -> bytes:
        """The public half of the signing key, 32 bytes."""
        return _raw_public(self.signing)


def fingerprint(der: bytes) -> str:
    """SHA-256 of a certificate in DER, by which people compare it.

    >>> fingerprint(b"a certificate")[:16]
    '81acd762140fa692'
    """
    return hashlib.sha256(der).hexdigest()


JOBS = "jobs.register"
"""The file in which an identity keeps what it let out (`job_register`)."""


def sealed_register(jobs: list[object], key: bytes) -> bytes:
    """A register's bytes: its jobs, and their keyed digest.

    >>> sealed_register([], bytes(32))[:12]
    b'{"digest": "'
    """
    text = json.dumps(jobs, sort_keys=True).encode()
    digest = hmac.new(key, b"register" + text, hashlib.sha256).hexdigest()
    return json.dumps({"digest": digest, "jobs": jobs}, sort_keys=True).encode()


def public_file(folder: Path) -> Path:
    """The one file of an identity that is meant for others.

    >>> public_file(write_file(Path("public/clinic.party.toml"), b"").parent).name
    'clinic.party.toml'
    """
    found = sorted(folder.glob("*.party.toml")) if folder.is_dir() else []
    if len(found) != 1:
        raise KeyRefused(
            say("'{folder}' is not the folder of a party.", folder=folder.name),
            "It holds no, or more than one, .party.toml file.",
            "Give the folder that `velado party keygen` made.",
        )
    return found[0]


def make_identity(
    folder: Path,
    party: Party,
    passphrase: str,
    days: int = DAYS,
    paillier_bits: int = 0,
    log2_n: int = LOG2_N,
    now: datetime.datetime | None = None,
) -> Party:
    """Fresh keys stand in *folder*, readable by their owner alone; returns the public part for the job.

    >>> told = make_identity(Path("made"), Party("clinic", "client"), "four words", log2_n=15)
    >>> told.certificate[:3], sorted(path.name for path in Path("made").iterdir())
    ('MII', ['certificate.pem', 'clinic.party.toml', 'jobs.register', 'secrets.sealed', 'tls.key.pem'])
    """
    if not passphrase:
        raise KeyRefused(
            "The passphrase is empty.", "Whoever copies the folder could speak as this party.", "Give one."
        )
    checked_argument("days", days, CertificateDays)
    if (
        not party.name.isprintable()
        or not 1 <= len(party.name) <= 200
        or "/" in party.name
        or party.name[0] == "."
    ):
        raise ParameterError(
            "This name is not accepted.",
            "It names a file and is compared by all parties.",
            "Use a short name without a slash, not beginning with a dot.",
        )
    make_private_folder(folder, empty=True)
    tls_key, signing = ec.generate_private_key(ec.SECP256R1()), Ed25519PrivateKey.generate()
    certificate = _self_signed(tls_key, party, days, now or datetime.datetime.now(datetime.UTC))
    der = certificate.public_bytes(serialization.Encoding.DER)
    password = Tape.fresh_seed().hex().encode()
    journal_key = Tape.fresh_seed()
    secret = _raw_private(signing) + journal_key + password
    write_file(folder / SECRETS, _seal(secret, passphrase, party.name, der, log2_n), private=True)
    write_file(folder / JOBS, sealed_register([], journal_key), private=True)
    encryption = serialization.BestAvailableEncryption(password)
    pem = tls_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    write_file(folder / TLS_KEY, pem, private=True)
    write_file(folder / CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM), private=True)
    if paillier_bits:
        from velado.learning.crypto.paillier_keys import keygen

        private = keygen(paillier_bits, Tape(Tape.fresh_seed(), "paillier"))
        write_file(folder / PAILLIER, keyfile.seal(private, passphrase, log2_n=log2_n), private=True)
    told = Party(
        party.name, party.role, party.address, base64.b64encode(der).decode(), _raw_public(signing).hex()
    )
    write_file(folder / f"{party.name}.party.toml", party_toml(told).encode(), private=True)
    return told


def party_toml(party: Party) -> str:
    """The public part as an entry of a job file.

    >>> tomllib.loads(party_toml(Party("clinic", "client")))
    {'parties': [{'name': 'clinic', 'role': 'client'}]}
    """
    import tomli_w

    return tomli_w.dumps({"parties": [{k: v for k, v in vars(party).items() if v != ""}]})


def read_public(folder: Path) -> Party:
    """The public part of an identity, as keygen wrote it.

    >>> made = make_identity(Path("told"), Party("clinic", "client"), "four words", log2_n=15)
    >>> read_public(Path("told")) == made
    True
    """
    path = public_file(folder)
    try:
        (entry,) = tomllib.loads(path.read_bytes()[:65536].decode("utf-8"))["parties"]
        return Party(**entry)
    except (OSError, ValueError, KeyError, TypeError):
        raise KeyRefused(
            say("'{path}' does not hold one party.", path=path.name),
            "It was changed.",
            "Restore it, or make new keys.",
        ) from None


def open_identity(folder: Path, passphrase: str) -> Identity:
    """The keys in *folder*, if the passphrase opens them and nothing was changed.

    >>> told = make_identity(Path("own"), Party("clinic", "client"), "four words", log2_n=15)
    >>> open_identity(Path("own"), "four words").signing_public().hex() == told.signing_key
    True
    """
    public = read_public(folder)
    der = _read_certificate(folder / CERTIFICATE)
    sealed = read_private(folder / SECRETS)
    if len(sealed) <= _HEAD or sealed[: len(MAGIC)] != MAGIC or sealed[len(MAGIC)] != VERSION:
        raise KeyRefused(
            say("'{secrets}' is not of a version this velado reads.", secrets=SECRETS),
            "The party's keys cannot be opened.",
            "Give the folder that keygen made.",
        )
    log2_n = sealed[len(MAGIC) + 1]
    if not keyfile.is_accepted(log2_n):
        raise KeyRefused(
            say("'{secrets}' asks for parameters that are not accepted.", secrets=SECRETS),
            "A changed file could ask for all memory.",
            "Restore it, or make new keys.",
        )
    salt, nonce = sealed[_HEAD - _NONCE - _SALT : _HEAD - _NONCE], sealed[_HEAD - _NONCE : _HEAD]
    try:
        key = keyfile.cipher_of(passphrase, salt, log2_n)
        secret = key.decrypt(nonce, sealed[_HEAD:], _bound(sealed[:_HEAD], public.name, der))
    except InvalidTag:
        raise KeyRefused(
            "The passphrase does not open this identity, or a file of it was changed.",
            "A party without its keys cannot take part.",
            "Type the passphrase again, or restore the folder from its copy.",
        ) from None
    signing = Ed25519PrivateKey.from_private_bytes(secret[:32])
    return Identity(public.name, folder, der, signing, secret[32:64], secret[64:])


def _seal(secret: bytes, passphrase: str, name: str, der: bytes, log2_n: int) -> bytes:
    salt, nonce = Tape.fresh_seed()[:_SALT], Tape.fresh_seed()[:_NONCE]
    head = MAGIC + bytes([VERSION, log2_n]) + salt + nonce
    cipher = keyfile.cipher_of(passphrase, salt, log2_n)
    return head + cipher.encrypt(nonce, secret, _bound(head, name, der))


def _bound(head: bytes, name: str, der: bytes) -> bytes:
    return head + len(name.encode()).to_bytes(2, "big") + name.encode() + der


def _raw_private(key: Ed25519PrivateKey) -> bytes:
    raw: bytes = key.private_bytes_raw()
    return raw


def _raw_public(key: Ed25519PrivateKey) -> bytes:
    raw: bytes = key.public_key().public_bytes_raw()
    return raw


def _read_certificate(path: Path) -> bytes:
    try:
        found = x509.load_pem_x509_certificate(path.read_bytes()[:65536])
        der: bytes = found.public_bytes(serialization.Encoding.DER)
    except (OSError, ValueError):
        raise KeyRefused(
            say("'{path}' does not hold a certificate.", path=path.name),
            "The others know this party by it.",
            "Give the folder that `velado party keygen` made.",
        ) from None
    return der


def _self_signed(
    key: ec.EllipticCurvePrivateKey, party: Party, days: int, now: datetime.datetime
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party.name[:64])])
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    host = party.address.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host and host != "localhost":
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host.encode("idna").decode()))
    usage = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        # Clocks differ by minutes between hospitals.
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # It vouches for itself and for nobody else.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usage), critical=False)
        .sign(key, hashes.SHA256())
    )
