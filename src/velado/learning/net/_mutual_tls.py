"""Mutual TLS without an authority: whoever shows a certificate of the job, and holds its key, is that party.

The job file holds every party's self-signed certificate whole. The evaluator, who alone listens, takes exactly those and
ends every other handshake; whoever calls compares the certificate it is shown with the evaluator's before it sends a byte.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import re
import ssl
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from velado.errors import KeyRefused, SchemaError
from velado.learning.net.identity import Identity, fingerprint
from velado.learning.protocols.protocol import ROLES
from velado.learning.regression.job import Job
from velado.text import say

LARGEST_CERTIFICATE = 1 << 13
_HEX = re.compile(r"[0-9a-f]{64}")


class Pins:
    """Whose certificate and signing key is which, as the job says, and where the evaluator listens."""

    def __init__(self, job: Job) -> None:
        self.by_certificate: dict[str, str] = {}
        self.certificates: dict[str, bytes] = {}
        self.signing: dict[str, Ed25519PublicKey] = {}
        keys: set[str] = set()
        for party in job.parties:
            certificate, key = certificate_in(party.certificate), party.signing_key.lower()
            if not certificate or not _HEX.fullmatch(key):
                raise SchemaError(
                    say("The job has no certificate or signing key for {party}.", party=party.name),
                    "Anybody could speak in its name.",
                    "Paste the [[parties]] entry that `velado party keygen` wrote there.",
                )
            if fingerprint(certificate) in self.by_certificate or key in keys:
                raise SchemaError(
                    "Two parties of the job have the same certificate or signing key.",
                    "Their messages could not be told apart.",
                    "Let each party run `velado party keygen` itself.",
                )
            keys.add(key)
            self.by_certificate[fingerprint(certificate)] = party.name
            self.certificates[party.name] = certificate
            self.signing[party.name] = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        hub = job.of("evaluator")[0]
        self.evaluator = hub.name
        self.address = parse_address(hub.address, hub.name)

    def check_own(self, identity: Identity, role: str, job: Job) -> None:
        """Nothing, if the job knows this party by these keys and in this role, and its certificate is valid today."""
        party = job.party(identity.name)
        if party.role != role:
            raise SchemaError(
                say("{identity} is {role} in this job.", identity=identity.name, role=ROLES[party.role]),
                say("It was started as {role}.", role=ROLES.get(role, role)),
                say("Run `velado party {role}`.", role=party.role),
            )
        own = (identity.certificate, identity.signing_public().hex())
        if own != (self.certificates[identity.name], party.signing_key.lower()):
            raise KeyRefused(
                say("The job pins other keys for {identity} than this identity has.", identity=identity.name),
                "The others would refuse everything it says.",
                "Give the right folder, or paste the new [[parties]] entry into the job at all parties.",
            )
        check_validity(identity.certificate, identity.name)


def certificate_in(text: str) -> bytes:
    """The certificate a job file holds, in DER; nothing where it holds none.

    >>> certificate_in("AQID"), certificate_in("not one")
    (b'\\x01\\x02\\x03', b'')
    """
    if len(text) > 2 * LARGEST_CERTIFICATE:
        return b""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def parse_address(text: str, name: str) -> tuple[str, int]:
    """Host and port of `host:port` or `[v6]:port`."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    good = bool(host) and port.isascii() and port.isdigit() and len(port) <= 5 and 0 < int(port) < 65536
    try:
        host.encode("idna")
    except UnicodeError:
        good = False
    if not good:
        raise SchemaError(
            say("The address of {name} is not host:port.", name=name),
            "All others call it there.",
            'Write for example address = "hub.example:8443".',
        )
    return host, int(port)


def check_validity(der: bytes, name: str, now: datetime.datetime | None = None) -> None:
    """Nothing, if the certificate is valid at *now*; else KeyRefused says since when it is not."""
    try:
        found = x509.load_der_x509_certificate(der)
        start, end = found.not_valid_before_utc, found.not_valid_after_utc
    except (ValueError, TypeError):
        raise KeyRefused(
            say("What {name} showed is not a certificate.", name=name), "It proves nothing.", "Make new keys."
        ) from None
    now = now or datetime.datetime.now(datetime.UTC)
    if now > end:
        raise KeyRefused(
            say("The certificate of {name} expired on {end:%Y-%m-%d}.", name=name, end=end),
            "A certificate that is not renewed may be in other hands.",
            "Let it run `velado party keygen` and put the new entry into the job at all parties.",
        )
    if now < start:
        raise KeyRefused(
            say("The certificate of {name} is valid from {start:%Y-%m-%d} only.", name=name, start=start),
            "A clock is wrong here or there.",
            "Set the clock.",
        )


def server_context(identity: Identity, certificates: Iterable[bytes]) -> ssl.SSLContext:
    """For the listening side: a handshake ends well with one of *certificates* only; TLS 1.3, nothing older."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _own(context, identity)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0
    try:
        context.load_verify_locations(cadata=b"".join(certificates))
    except ssl.SSLError:
        raise SchemaError(
            "A certificate in the job cannot be read.",
            "Its party would be refused.",
            "Paste the [[parties]] entry that `velado party keygen` wrote there.",
        ) from None
    return context


def client_context(identity: Identity) -> ssl.SSLContext:
    """For the calling side; the server's certificate is compared by `check_server` after the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _own(context, identity)
    return context


def _own(context: ssl.SSLContext, identity: Identity) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(identity.certificate_file, identity.key_file, identity.tls_password)


def check_server(der: bytes | None, pins: Pins) -> None:
    """Nothing, if who answered at the evaluator's address showed its certificate, still valid."""
    if der != pins.certificates[pins.evaluator]:
        raise KeyRefused(
            say(
                "Who answers at the address of {name} shows another certificate than the job pins.",
                name=pins.evaluator,
            ),
            "It is somebody else, or the party made new keys.",
            "Compare the certificate in the job with the party's own; nothing was sent.",
        )
    check_validity(der, pins.evaluator)
