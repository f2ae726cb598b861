"""Who is who between machines: the agreement's parties, what they sign, and the register of what each let out.

Parties have the identities that encrypted regressions have (`velado party keygen`): one folder of keys, one signing key, one
register of jobs. The agreement names each with its public key and is known by a digest that holds them, so a signature over
digest, number and mask key says two things at once: these are my terms, and this key of the run is mine. Every client
checks those of all others before it works out a figure. Who carries the messages can then not put a key of its own in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from velado.data.table import Table
from velado.errors import KeyRefused, ParameterError, SchemaError
from velado.learning.flower._terms import FederationTerms
from velado.learning.flower.federation import Federation
from velado.learning.net.identity import Identity, open_identity, read_passphrase
from velado.learning.net.job_register import column_marks, column_sketches, enter
from velado.learning.protocols.parts import EarlierJob, refuse_difference
from velado.learning.regression.job import Party
from velado.text import say

SIGNATURE_BYTES = 64


def check_parties(parties: Sequence[Party], federation: Federation) -> None:
    """Nothing, where *parties* are as many clients as the federation has, each with a name and a key of its own.

    >>> check_parties((), Federation(clients=3))
    >>> check_parties((Party("clinic", "client"),), Federation(clients=3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.SchemaError: The recipe names 1 clients, and the federation has 3...
    """
    clients = [one for one in parties if one.role == "client"]
    if parties and len(clients) != federation.clients:
        raise SchemaError(
            say(
                "The recipe names {named} clients, and the federation has {clients}.",
                named=len(clients),
                clients=federation.clients,
            ),
            "A client's number is its place among the [[parties]].",
            'Give one [[parties]] entry with role = "client" for each, as `velado party keygen` prints it.',
        )
    keys = [one.signing_key for one in clients]
    if len({one.name for one in clients}) != len(clients) or len(set(keys)) != len(keys):
        raise SchemaError(
            "Two of the [[parties]] have the same name or the same key.",
            "Nobody could tell whose words are whose.",
            "Let each hospital make an identity of its own.",
        )
    if any(not _is_key(key) for key in keys):
        raise SchemaError(
            "One of the [[parties]] has no signing key.",
            "What it says could not be told from what somebody else says in its name.",
            "Take the entry that `velado party keygen` printed, whole.",
        )


def _is_key(text: str) -> bool:
    try:
        return len(bytes.fromhex(text)) == 32
    except ValueError:
        return False


def refuse_unnamed(terms: FederationTerms) -> None:
    """Nothing, or SchemaError: secure sums between machines need to know whose keys hide them."""
    if terms.agreed.hidden and not terms.parties:
        raise SchemaError(
            "The recipe names no parties, and secure sums between machines need them.",
            "Whoever carries the keys could put its own in between and see single clients' sums.",
            "Let each hospital run `velado party keygen --role client`, and paste the [[parties]] entries into the recipe.",
        )


def claim(digest: str, number: int, key: bytes) -> bytes:
    """What a client signs: the terms it agreed to, which client it is, and the key of this run (none without masks)."""
    return b"velado federated client\0" + bytes.fromhex(digest) + number.to_bytes(4, "big") + key


def signed_by(signer: str, signature: bytes, said: bytes) -> bool:
    """Whether the owner of the public key *signer* signed *said*.

    >>> signed_by("00" * 32, bytes(64), b"said")
    False
    """
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(signer)).verify(signature, said)
    except (InvalidSignature, ValueError):
        return False
    return True


def refuse_unsigned(
    digest: str,
    signers: Sequence[str],
    members: Sequence[int],
    keys: Sequence[bytes],
    signatures: Sequence[bytes],
) -> None:
    """Nothing, where every member's key is signed by the party the agreement names; ParameterError else, before anything is summed."""
    for number, key, signature in zip(members, keys, signatures, strict=True):
        if not signed_by(signers[number - 1], signature, claim(digest, number, key)):
            raise ParameterError(
                say("The key that came for client {number} is not signed by it.", number=number),
                "Whoever put another key in its place could take the masks off this client's sums.",
                "Ask the coordinator, and the hospital itself; nothing was summed.",
            )


@dataclass(frozen=True, repr=False)
class OwnParty:
    """This machine's client as a party: its identity is opened when it is first needed, and *marks* name its columns."""

    folder: Path
    passphrase_file: Path
    terms: FederationTerms
    number: int
    marks: Mapping[str, str]
    sketches: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def identity(self) -> Identity:
        """The identity, if it is the one that the agreement names for this number."""
        found = open_identity(self.folder, read_passphrase(self.passphrase_file))
        agreed = self.terms.clients[self.number - 1]
        if found.signing_public().hex() != agreed.signing_key:
            raise KeyRefused(
                say(
                    "This identity is not the one that the agreement names for client {number}.",
                    number=self.number,
                ),
                "The others would refuse what it signs.",
                "Check 'client' and 'identity' of --node-config, or have the agreement corrected.",
            )
        return found

    def sign(self, key: bytes) -> bytes:
        """This client's signature under the terms and its key of this run."""
        return self.identity.signing.sign(claim(self.terms.digest, self.number, key))

    def let_out(self, members: Sequence[int]) -> None:
        """This client's figures may be summed with those of *members*, and that stands in the register; else InputError."""
        clients, federation = self.terms.clients, self.terms.federation
        job = EarlierJob(
            job=self.terms.digest,
            roster=tuple(clients[one - 1].name for one in members),
            columns=self.marks,
            exact=federation.noise is None,
            sketches=self.sketches,
        )
        name = clients[self.number - 1].name

        def check(earlier: Sequence[EarlierJob]) -> None:
            refuse_difference(earlier, job, federation.minimum_clients, name, federation.least_cell)

        enter(self.identity, job, check)


def marks_of(table: Table, terms: FederationTerms, identity: Identity) -> dict[str, dict[str, str]]:
    """A keyed digest of each column that training reads, and a sketch of those that it reads as they are: the same as a regression over the same column gives."""
    names = [*(column.name for column in terms.encoder.columns), terms.encoder.target]
    columns = {name: table.text(name).fill_null("").to_numpy() for name in names}
    layout = terms.agreed.layout
    hidden = {name for name, raw in zip(layout.columns, layout.raw, strict=True) if not raw}
    shown = {name: values for name, values in columns.items() if name not in hidden}
    return {"marks": column_marks(columns, identity), "sketches": column_sketches(shown, identity)}
