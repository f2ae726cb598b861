"""Job: what several parties agreed to compute, before anyone sends a byte. Read from TOML; unknown keys are errors.

Every message carries the job's digest, so parties that hold different files never work together by accident. This
module is pure; files are read by `velado.learning.net`.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

from velado.errors import ParameterError, SchemaError
from velado.learning.protocols.protocol import Protocol, RoleName

# The limits every job keeps to, whoever makes it: key, precision, columns, clients, rows, noise and parties.

LEAST_CLIENTS = 3
LEAST_ROWS = 10
LEAST_KEY_BITS = 2048


def check(job: Job) -> None:
    """Nothing, if the job can be run and keeps to every limit; else the error that names what is wrong."""
    least = job.protocol.least_key_bits
    if not least <= job.key_bits <= 8192 or job.key_bits % 8:
        raise ParameterError(
            f"A key of {job.key_bits} bits is not accepted.",
            f"Under {least} bits the encryption can be broken, and above 8192 a run takes hours.",
            "Use 3072, the default.",
        )
    if not 0 <= job.bits <= 128:
        raise ParameterError(
            f"{job.bits} fractional bits are not accepted.",
            "They say how finely numbers are encoded: 0 to 128.",
            "Use 20, the default.",
        )
    if not job.features:
        raise ParameterError(
            "The job has no features.",
            "There would be nothing to explain the target by.",
            "Name at least one feature.",
        )
    if job.ridge < 0:
        raise ParameterError(
            "lambda is negative.",
            "It is a penalty: 0 is least squares, and more makes coefficients smaller.",
            "Use 0 or more.",
        )
    if not 0 < job.minutes <= 10_000:
        raise ParameterError(
            "minutes is not above 0 and at most 10000.",
            "A job without a time limit would wait for ever for a party that never comes.",
            "Use for example 30.",
        )
    names = [column.name for column in (*job.features, job.target)]
    if len(set(names)) != len(names):
        raise ParameterError(
            "A column stands twice among the features and the target.",
            "The fit would be singular.",
            "Name each column once.",
        )
    for column in (*job.features, job.target):
        if not column.low < column.high:
            raise ParameterError(
                f"The bounds of column '{column.name}' do not rise.",
                "They are the public domain the encoding is made for.",
                "Write for example bounds = [0, 120].",
            )
    _check_limits(job)
    _check_moments(job)
    _check_epsilon(job)
    _check_parties(job)


def _check_limits(job: Job) -> None:
    if job.minimum_clients < job.protocol.least_clients:
        raise ParameterError(
            f"A job needs at least {LEAST_CLIENTS} clients.",
            "With two, each could subtract its own rows from the sum and see the other's.",
            f"Set minimum_clients to {LEAST_CLIENTS} or more.",
        )
    if job.minimum_rows < 1:
        raise ParameterError(
            "minimum_rows is below 1: clients have at least one row.",
            "The sums of few rows tell much about each of them.",
            f"Use {LEAST_ROWS}, the default.",
        )
    if job.most_rows < job.minimum_clients * job.minimum_rows:
        raise ParameterError(
            "most_rows is less than minimum_clients times minimum_rows.",
            "It bounds the rows of all clients together, so no run could keep to both.",
            f"Set most_rows to {job.minimum_clients * job.minimum_rows} or more.",
        )


def _check_moments(job: Job) -> None:
    if not job.moments:
        return
    if job.protocol.pooled is None:
        raise ParameterError(
            f"The protocol {job.protocol.name} gives no standard errors.",
            "They follow from the pooled sums, and this protocol does not give them out.",
            "Leave moments out, or use delegated or secure-sum.",
        )
    if job.ridge != 0:
        raise ParameterError(
            "Standard errors and lambda above 0 do not go together.",
            "The textbook's standard errors are those of least squares; a penalised fit has a bias they do not know of.",
            "Leave one of them out.",
        )


def _check_epsilon(job: Job) -> None:
    if job.epsilon is None:
        return
    if job.protocol.pooled is None:
        raise ParameterError(
            f"The protocol {job.protocol.name} cannot add noise.",
            "Noise is added to the pooled sums, and this protocol does not give them out.",
            "Leave epsilon out, or use delegated or secure-sum.",
        )
    if not 0 < job.epsilon <= 1000:
        raise ParameterError(
            "epsilon is above 0 and at most 1000.",
            "It says how much one row may change the odds of any result.",
            "Use for example 1.",
        )
    if job.moments:
        raise ParameterError(
            "Standard errors and epsilon do not go together.",
            "The textbook's standard errors do not know of the noise, and would be too small.",
            "Leave one of them out.",
        )


def _check_parties(job: Job) -> None:
    names = [party.name for party in job.parties]
    if len(set(names)) != len(names):
        raise ParameterError(
            "Two parties have the same name.", "Messages are told apart by it.", "Give each its own name."
        )
    needed = 0 if job.protocol.provider is None else 1
    if len(job.of("evaluator")) != 1 or len(job.of("provider")) != needed:
        raise ParameterError(
            f"The protocol {job.protocol.name} needs one evaluator and {needed} provider(s).",
            "Who holds the key and who holds the encrypted sums must be different parties.",
            "Correct the [[parties]] of the job.",
        )
    if len(job.of("client")) < job.minimum_clients:
        raise ParameterError(
            f"The job names fewer than {job.minimum_clients} clients.",
            "So few could work out each other's rows.",
            "Add clients.",
        )


FORMAT = 1


@dataclass(frozen=True)
class Party:
    """One participant: its role, where it is reached (host:port; empty in a simulation), and its pinned certificate.

    *certificate* is the SHA-256 of the certificate in DER, as hexadecimal text: whoever shows another is refused.
    *signing_key* is the Ed25519 public key its messages are signed with, as hexadecimal text.
    """

    name: str
    role: RoleName
    address: str = ""
    certificate: str = ""
    signing_key: str = ""


@dataclass(frozen=True)
class Bounded:
    """A column of the design or the target with its public bounds; a value outside them is an error at its owner."""

    name: str
    low: Fraction
    high: Fraction


@dataclass(frozen=True)
class Job:
    """One regression over several parties' rows: y = X beta, lambda |beta|^2 added (intercept excepted).

    *bits* q say how finely values are encoded: to about 2^-q of their column's span and finer (`velado.learning.regression.fit`).
    *most_rows* is the public bound on all rows together that the needed modulus and the packing follow from. *moments* asks
    for y^T y too, from which standard errors follow where the protocol reveals the pooled moments to someone. *epsilon* asks
    for noise on the pooled moments (`velado.learning.regression.regression_noise`) where the protocol has a party that sees them.
    """

    name: str
    protocol: Protocol
    features: tuple[Bounded, ...]
    target: Bounded
    parties: tuple[Party, ...]
    ridge: Fraction = Fraction(0)
    bits: int = 20
    key_bits: int = 3072
    intercept: bool = True
    minimum_rows: int = LEAST_ROWS
    minimum_clients: int = LEAST_CLIENTS
    most_rows: int = 1_000_000
    moments: bool = False
    minutes: float = 30.0
    epsilon: Fraction | None = None

    def __post_init__(self) -> None:
        check(self)

    def of(self, role: RoleName) -> tuple[Party, ...]:
        """The parties with one role, in the job's order."""
        return tuple(party for party in self.parties if party.role == role)

    def party(self, name: str) -> Party:
        """The party of that name."""
        for party in self.parties:
            if party.name == name:
                return party
        raise ParameterError(
            "The job has no party of that name.",
            "Only those the job names take part.",
            f"Parties: {', '.join(p.name for p in self.parties)}.",
        )

    @property
    def width(self) -> int:
        """D: the unknowns, features and intercept."""
        return len(self.features) + int(self.intercept)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The names of the coefficients, the intercept first where there is one."""
        return (*(("(intercept)",) if self.intercept else ()), *(f.name for f in self.features))

    def to_dict(self) -> dict[str, Any]:
        """As the job file has it; numbers as exact text."""
        return {
            "format": FORMAT,
            "name": self.name,
            "protocol": self.protocol.name,
            "target": {"name": self.target.name, "bounds": [str(self.target.low), str(self.target.high)]},
            "features": [{"name": f.name, "bounds": [str(f.low), str(f.high)]} for f in self.features],
            "lambda": str(self.ridge),
            "bits": self.bits,
            "key_bits": self.key_bits,
            "intercept": self.intercept,
            "minimum_rows": self.minimum_rows,
            "minimum_clients": self.minimum_clients,
            "most_rows": self.most_rows,
            "moments": self.moments,
            "minutes": self.minutes,
            **({} if self.epsilon is None else {"epsilon": str(self.epsilon)}),
            "parties": [
                {key: value for key, value in vars(party).items() if value != ""} for party in self.parties
            ],
        }

    def digest(self) -> str:
        """SHA-256 of the job's canonical text: the job id every message carries."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], protocols: Mapping[str, Protocol]) -> Job:
        """From parsed TOML, with one of *protocols*; every mistake is named with its place and nothing unknown is passed over."""
        _known(document, _JOB_KEYS, "the job")
        if document.get("format", FORMAT) != FORMAT:
            raise SchemaError(
                "The job file has a format this version does not know.",
                f"This velado reads format {FORMAT}.",
                "Use the same version of velado at all parties.",
            )
        for key in ("name", "protocol", "target", "features", "parties"):
            if key not in document:
                raise SchemaError(
                    f"The job lacks '{key}'.", "All parties must agree on it beforehand.", f"Add {key}."
                )
        if not isinstance(document["protocol"], str) or document["protocol"] not in protocols:
            raise SchemaError(
                "The job's protocol is not known.",
                f"Protocols are {', '.join(protocols)}.",
                'Write for example protocol = "masked".',
            )
        plain = {
            key: document[key]
            for key in (
                "bits",
                "key_bits",
                "intercept",
                "minimum_rows",
                "minimum_clients",
                "most_rows",
                "moments",
                "minutes",
            )
            if key in document
        }
        for key, value in plain.items():
            wanted: tuple[type, ...] = (
                (bool,) if key in ("intercept", "moments") else (int, float) if key == "minutes" else (int,)
            )
            if not isinstance(value, wanted) or (bool not in wanted and isinstance(value, bool)):
                raise SchemaError(
                    f"'{key}' of the job has the wrong type.",
                    "It is a number, or true or false.",
                    "Correct it.",
                )
        return cls(
            name=_text(document["name"], "'name' of the job"),
            protocol=protocols[document["protocol"]],
            features=tuple(
                _bounded(entry, "[[features]]") for entry in _list(document["features"], "features")
            ),
            target=_bounded(document["target"], "[target]"),
            parties=tuple(_party(entry) for entry in _list(document["parties"], "parties")),
            ridge=_number(document.get("lambda", 0), "'lambda'"),
            epsilon=_number(document["epsilon"], "'epsilon'") if "epsilon" in document else None,
            **plain,
        )


__all__ = [
    "LEAST_CLIENTS",
    "LEAST_KEY_BITS",
    "LEAST_ROWS",
    "Bounded",
    "Job",
    "Party",
]

_JOB_KEYS = (
    "format",
    "name",
    "protocol",
    "target",
    "features",
    "lambda",
    "bits",
    "key_bits",
    "intercept",
    "minimum_rows",
    "minimum_clients",
    "most_rows",
    "moments",
    "minutes",
    "epsilon",
    "parties",
)


def _known(entry: Any, keys: tuple[str, ...], where: str) -> None:
    if not isinstance(entry, Mapping):
        raise SchemaError(f"{where} is not a table.", "Its keys cannot be read.", "Write keys below it.")
    for key in entry:
        if key not in keys:
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known keys: {', '.join(keys)}."
            shown = str(key) if str(key).isprintable() and len(str(key)) <= 60 else "?"
            raise SchemaError(
                f"Unknown key '{shown}' in {where}.", "A misspelt key would be passed over.", hint
            )


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise SchemaError(
            f"'{what}' of the job is not a list with entries.",
            "Each entry is a table.",
            f"Write [[{what}]] entries.",
        )
    return value


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value or len(value) > 200 or not value.isprintable():
        raise SchemaError(
            f"{what} is not a short text.",
            "It is shown and compared.",
            "Write it in quotes, up to 200 characters.",
        )
    return value


def _number(value: Any, what: str) -> Fraction:
    try:
        if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
            raise ValueError
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise SchemaError(
            f"{what} of the job is not a finite number.", "It is used exactly.", "Write for example 0.5."
        ) from None


def _bounded(entry: Any, where: str) -> Bounded:
    _known(entry, ("name", "bounds"), where)
    bounds = entry.get("bounds")
    if "name" not in entry or not isinstance(bounds, list) or len(bounds) != 2:
        raise SchemaError(
            f"An entry of {where} lacks a name or two bounds.",
            "Bounds are public and fix how numbers are encoded; they are never read off the rows.",
            'Write for example { name = "age", bounds = [0, 120] }.',
        )
    low, high = (_number(bound, f"A bound in {where}") for bound in bounds)
    return Bounded(_text(entry["name"], f"'name' in {where}"), low, high)


def _party(entry: Any) -> Party:
    _known(entry, ("name", "role", "address", "certificate", "signing_key"), "[[parties]]")
    if entry.get("role") not in get_args(RoleName) or "name" not in entry:
        raise SchemaError(
            "A party has no name or no known role.",
            f"Roles are {', '.join(get_args(RoleName))}.",
            'Write for example { name = "clinic", role = "client", ... }.',
        )
    values = {key: _text(value, f"'{key}' in [[parties]]") for key, value in entry.items()}
    return Party(**values)  # type: ignore[arg-type]
