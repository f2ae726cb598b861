"""A real SuperLink and real SuperNodes on loopback, with certificates of their own; everything is stopped by its id."""

import datetime
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from velado.data.staging import write_file
from velado.learning.flower.deployment import (
    environment,
    register_command,
    run_command,
    superlink_command,
    supernode_command,
)
from velado.learning.net.identity import make_identity
from velado.learning.regression.job import Party

WORDS = "four words are enough"


def make_parties(folder: Path, clients: int) -> list[dict[str, str]]:
    """Identities of *clients* hospitals in folders named h1 to hN, and their [[parties]] entries."""
    write_file(folder / "words", WORDS.encode(), private=True)
    told = [
        make_identity(folder / f"h{one}", Party(f"h{one}", "client"), WORDS, log2_n=15)
        for one in range(1, clients + 1)
    ]
    return [{key: value for key, value in vars(one).items() if value} for one in told]


_FORM = serialization.PrivateFormat.PKCS8
_PLAIN = serialization.NoEncryption()


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def make_authority(folder: Path, name: str = "ca") -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """A certificate authority of our own; its certificate is NAME.crt."""
    key = ec.generate_private_key(ec.SECP384R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"test {name}")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(hours=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_usage(authority=True), critical=True)
        .sign(key, hashes.SHA384())
    )
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key


def make_server_certificate(folder: Path) -> None:
    """ca.crt, server.crt and server.key for 127.0.0.1 and localhost."""
    authority, signer = make_authority(folder)
    key = ec.generate_private_key(ec.SECP384R1())
    today = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")]))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(hours=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
        .add_extension(_usage(authority=False), critical=True)
        .sign(signer, hashes.SHA384())
    )
    (folder / "server.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(key.private_bytes(serialization.Encoding.PEM, _FORM, _PLAIN))


def _usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def make_node_key(path: Path) -> None:
    """A SuperNode's key as ssh-keygen writes it, and its public part beside it."""
    key = ec.generate_private_key(ec.SECP384R1())
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, _PLAIN)
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    path.with_suffix(".key.pub").write_bytes(public + b"\n")


@dataclass
class Machines:
    """The processes of one federation; each in a session of its own, so that it is stopped with its children."""

    folder: Path
    address: str
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def start(self, name: str, command: list[str], extra: Mapping[str, str] | None = None) -> None:
        """*command* runs; what it says is in NAME.log."""
        home = self.folder / "homes" / name
        home.mkdir(parents=True, exist_ok=True)
        settings = {**os.environ, **environment(self.folder), "HOME": str(home), **(extra or {})}
        settings["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{settings['PATH']}"
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                command,
                env=settings,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def start_superlink(self) -> None:
        """The SuperLink listens."""
        self.start("superlink", superlink_command(self.folder, self.address, "127.0.0.1"))
        self.wait(lambda: self._listens(), 180, "the SuperLink does not listen")

    def start_supernode(self, client: int, table: Path) -> None:
        """A registered SuperNode starts."""
        key = self.folder / f"{client}.key"
        if not key.exists():
            make_node_key(key)
            self.call("register", register_command(str(key.with_suffix(".key.pub"))), 180)
        work = str(self.folder / "work" / str(client))
        keys = self.folder.parent / "parties"
        command = supernode_command(
            self.folder,
            self.address,
            client,
            str(table),
            work,
            str(key),
            free_port(),
            (str(keys / f"h{client}"), str(keys / "words")),
        )
        self.start(f"supernode-{client}", command)

    def call(self, name: str, command: list[str], seconds: float) -> int:
        """*command* ends within *seconds*, and this is its code."""
        self.start(name, command)
        return self.running[name].wait(timeout=seconds)

    def start_run(self, output: Path) -> None:
        """The rounds are asked for."""
        self.start("run", run_command(self.folder, str(output)))

    def said(self, name: str) -> str:
        """The log of a process."""
        path = self.folder / f"{name}.log"
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def wait(self, ready, seconds: float, otherwise: str) -> None:
        """*ready* says yes within *seconds*, or the test fails with the logs' ends."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if ready():
                return
            time.sleep(0.2)
        logs = "\n".join(f"--- {name}\n{self.said(name)[-3000:]}" for name in self.running)
        raise AssertionError(f"{otherwise} after {seconds:g} s\n{logs}")

    def kill(self, name: str) -> None:
        """The process and its children end at once, as when a machine loses power."""
        process = self.running[name]
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=20)

    def stop(self) -> None:
        """Everything that was started ends."""
        for name, process in reversed(self.running.items()):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
                try:
                    process.wait(timeout=8)
                except subprocess.TimeoutExpired:
                    self.kill(name)
            # What a process left behind in its session ends too.
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue

    def _listens(self) -> bool:
        with socket.socket() as asked:
            asked.settimeout(0.5)
            host, _, port = self.address.rpartition(":")
            return asked.connect_ex((host, int(port))) == 0
