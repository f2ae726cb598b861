"""Mutual TLS without an authority: whoever shows the certificate the job pins, and holds its key, is that party.

OpenSSL accepts a self-signed certificate from a client only if it has it beforehand, and the job pins a hash alone. So a
party introduces itself: over a connection whose server it has checked it hands over its certificate, the server
compares the hash with the job, and from then on takes it. A hash has one certificate, so there is nothing to trust in
that. Both sides compare the other's certificate again after each handshake, before a byte of content is sent or read.
"""

from __future__ import annotations

import datetime
import re
import ssl
from collections.abc import Mapping

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from velado.errors import KeyRefused, SchemaError
from velado.learning.net.identity import Identity, fingerprint
from velado.learning.regression.job import Job
from velado.text import say

LARGEST_CERTIFICATE = 1 << 13
_HEX = re.compile(r"[0-9a-f]{64}")


class Pins:
    """Whose certificate and signing key is which, as the job says."""

    def __init__(self, job: Job) -> None:
        self.by_certificate: dict[str, str] = {}
        self.certificates: dict[str, str] = {}
        self.signing: dict[str, Ed25519PublicKey] = {}
        self.addresses: dict[str, tuple[str, int]] = {}
        keys: set[str] = set()
        for party in job.parties:
            certificate, key = party.certificate.lower(), party.signing_key.lower()
            if not _HEX.fullmatch(certificate) or not _HEX.fullmatch(key):
                raise SchemaError(
                    say("The job has no certificate or signing key for {party}.", party=party.name),
                    "Anybody could speak in its name.",
                    "Paste the [[parties]] entry that `velado party keygen` wrote there.",
                )
            if certificate in self.by_certificate or key in keys:
                raise SchemaError(
                    "Two parties of the job have the same certificate or signing key.",
                    "Their messages could not be told apart.",
                    "Let each party run `velado party keygen` itself.",
                )
            keys.add(key)
            self.by_certificate[certificate] = party.name
            self.certificates[party.name] = certificate
            self.signing[party.name] = Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
            self.addresses[party.name] = parse_address(party.address, party.name)

    def check_own(self, identity: Identity, role: str, job: Job) -> None:
        """Nothing, if the job knows this party by these keys and in this role, and its certificate is valid today."""
        party = job.party(identity.name)
        if party.role != role:
            raise SchemaError(
                say("{identity} is {role} in this job.", identity=identity.name, role=party.role),
                say("It was started as {role}.", role=role),
                say("Run `velado party {role}`.", role=party.role),
            )
        own = (fingerprint(identity.certificate), identity.signing_public().hex())
        if own != (self.certificates[identity.name], party.signing_key.lower()):
            raise KeyRefused(
                say("The job pins other keys for {identity} than this identity has.", identity=identity.name),
                "The others would refuse everything it says.",
                "Give the right folder, or paste the new [[parties]] entry into the job at all parties.",
            )
        check_validity(identity.certificate, identity.name)


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
            "The others must be able to reach it.",
            'Write for example address = "clinic.example:8443".',
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


def server_context(identity: Identity, known: Mapping[str, bytes]) -> ssl.SSLContext:
    """For the listening side: asks for a certificate and takes those in *known*; TLS 1.3, nothing older."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _own(context, identity)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.num_tickets = 0
    for der in known.values():
        context.load_verify_locations(cadata=der)
    return context


def client_context(identity: Identity | None) -> ssl.SSLContext:
    """For the calling side; the server's certificate is compared by `check_server` after the handshake.

    Without an identity it shows no certificate, as an introduction needs it.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if identity is None:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
    else:
        _own(context, identity)
    return context


def _own(context: ssl.SSLContext, identity: Identity) -> None:
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_cert_chain(identity.certificate_file, identity.key_file, identity.tls_password)


def check_server(der: bytes | None, pins: Pins, name: str) -> None:
    """Nothing, if the server that answered at a party's address showed that party's certificate, still valid."""
    if der is None or fingerprint(der) != pins.certificates[name]:
        raise KeyRefused(
            say(
                "Who answers at the address of {name} shows another certificate than the job pins.", name=name
            ),
            "It is somebody else, or the party made new keys.",
            "Compare the certificate in the job with the party's own; nothing was sent.",
        )
    check_validity(der, name)
