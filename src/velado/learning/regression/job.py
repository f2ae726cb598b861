"""Job: what several parties agreed to compute, before anyone sends a byte.

Every message carries the job's digest, so parties that hold different files never work together by accident. This
module is pure; files are read by `velado.learning.net`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated

from velado.errors import ParameterError, SchemaError
from velado.learning.crypto.fixed_point import Bounded, ShortText
from velado.learning.protocols.protocol import RegressionProtocol, RoleName
from velado.learning.regression.families import FAMILIES
from velado.learning.regression.families._family import Family
from velado.learning.regression.penalty_path import PathKind
from velado.query.budget import Budget, Delta, Spend
from velado.settings import Setting, Where, nearest, read, settings, shown, table_of
from velado.text import say

LEAST_KEY_BITS = 2048
FORMAT = 1
INTERCEPT = "(intercept)"
DEFAULT_PROTOCOL = "secure-sum"
FamilyName = Annotated[
    str,
    Setting(
        "linear; logistic for a target of 0 and 1; poisson for counts: in rounds of sums",
        choices=lambda: FAMILIES,
    ),
]


@settings
class Party:
    """One participant: its role, where it is reached (the evaluator alone, host:port), and its pinned certificate.

    *certificate* is the certificate itself, DER in base64: whoever shows another is refused.
    *signing_key* is the Ed25519 public key its messages are signed with, as hexadecimal text.

    >>> Party("clinic", "client")
    Party(name='clinic', role='client', address='', certificate='', signing_key='')
    """

    name: Annotated[ShortText, Setting("the party's name in the job", example='name = "clinic"')]
    role: Annotated[RoleName, Setting("its part", example='role = "client"')]
    address: Annotated[str, Setting("where the others reach the evaluator, host:port; others need none")] = ""
    certificate: Annotated[str, Setting("its certificate, DER in base64")] = ""
    signing_key: Annotated[str, Setting("its Ed25519 public key, hexadecimal")] = ""


@settings
class Job:
    """One regression over several parties' rows: y = X beta, lambda |beta|^2 added (intercept excepted).

    >>> from velado.learning.protocols.secure_sum import SECURE_SUM
    >>> parties = (Party("hub", "evaluator"), *(Party(f"c{i}", "client") for i in range(3)))
    >>> job = Job("stay", SECURE_SUM, (Bounded("age", (0, 120)),), Bounded("days", (0, 60)), parties)
    >>> job.unknowns, job.digest()[:8]
    (('(intercept)', 'age'), '84907637')
    """

    name: Annotated[ShortText, Setting("the job's name")]
    # A name in a file, looked up among the protocols that its reader was given.
    protocol: Annotated[
        RegressionProtocol, Setting("how the parties work together", parts=lambda: (), kind="protocol")
    ]
    features: Annotated[tuple[Bounded, ...], Setting("the columns to explain the target by", items=1)]
    target: Annotated[Bounded, Setting("the column to explain")]
    parties: Annotated[tuple[Party, ...], Setting("who takes part", items=1)]
    ridge: Annotated[
        Fraction, Setting("penalty on the coefficients; 0: least squares", ge=0, key="lambda")
    ] = Fraction(0)
    bits: Annotated[
        int, Setting("how finely values are encoded: to about 2^-q of their column's span", ge=0, le=128)
    ] = 20
    key_bits: Annotated[
        int, Setting("size of the Paillier key", ge=1024, le=8192, why="Above 8192 bits a run takes hours.")
    ] = 3072
    intercept: Annotated[bool, Setting("whether a constant is fitted too")] = True
    key_holder: Annotated[
        str | None,
        Setting(
            "delegated-to-client: the client that makes the key and opens the total",
            example='key_holder = "north"',
        ),
    ] = None
    minimum_rows: Annotated[
        int,
        Setting("fewest rows of a client", ge=1, why="The sums of few rows tell much about each of them."),
    ] = 10
    minimum_clients: Annotated[int, Setting("fewest clients", ge=1)] = 3
    most_rows: Annotated[
        int, Setting("public bound on all clients' rows; the needed modulus and the packing follow from it")
    ] = 1_000_000
    moments: Annotated[bool, Setting("standard errors too, where the protocol shows somebody the sums")] = (
        False
    )
    minutes: Annotated[
        float,
        Setting(
            "how long the parties wait for one another",
            gt=0,
            le=10_000,
            why="A job without a time limit would wait for ever for a party that never comes.",
        ),
    ] = 30.0
    family: FamilyName = "linear"
    weight: Annotated[Bounded | None, Setting("a column by which every row counts")] = None
    path: Annotated[
        PathKind,
        Setting("coefficients for a row of penalties too, from the same sums; BIC chooses one of them"),
    ] = "none"
    folds: Annotated[
        int,
        Setting(
            "with path: a penalty is chosen on rows held out in turn, in so many parts; 0: BIC chooses",
            ge=0,
            le=20,
            why="Every part is summed by itself and must keep the thresholds.",
        ),
    ] = 0
    least_cell: Annotated[
        int,
        Setting(
            "fewest rows, of all clients, by which a column may differ from a constant; exact results only",
            ge=1,
            why="A column that one person alone moves shows that person's values in the sums.",
        ),
    ] = 10
    epsilon: Annotated[
        Spend | None, Setting("noise by the clients inside the sums: (epsilon, delta) for one row")
    ] = None
    delta: Annotated[Delta, Setting("with epsilon: the chance that the promise may fail")] = Fraction(
        1, 1_000_000
    )
    rho: Annotated[Spend | None, Setting("the same noise, given as rho of zCDP instead of epsilon")] = None
    tolerated: Annotated[
        int,
        Setting(
            "with noise: how many clients may be missing or work together with who sees the sums",
            ge=1,
            why="A client knows its own part of the noise, so at least its own is not counted on.",
        ),
    ] = 1

    def __post_init__(self) -> None:
        _check_limits(self)
        _check_family(self)
        _check_sums(self)
        _check_parties(self)

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
            say("Parties: {names}.", names=", ".join(p.name for p in self.parties)),
        )

    @property
    def noise(self) -> Budget | None:
        """What a run may cost each row, as rho of zCDP; None where results are exact."""
        if self.rho is not None:
            return Budget.rho(self.rho, self.delta)
        return None if self.epsilon is None else Budget.approximate(self.epsilon, self.delta)

    @property
    def iterated(self) -> bool:
        """Whether the coefficients are found in rounds of sums: families other than linear, and weighted rows."""
        return not self.model.sums or self.weight is not None

    @property
    def model(self) -> Family:
        """The family, which says what its mean, variance and target are."""
        return FAMILIES[self.family]

    @property
    def width(self) -> int:
        """D: the unknowns, features and intercept."""
        return len(self.features) + int(self.intercept)

    @property
    def unknowns(self) -> tuple[str, ...]:
        """The names of the coefficients, the intercept first where there is one."""
        return (*((INTERCEPT,) if self.intercept else ()), *(f.name for f in self.features))

    def to_dict(self) -> dict[str, object]:
        """As the job file has it; numbers as exact text."""
        parties = [table_of(party, defaults=False) for party in self.parties]
        return {"format": FORMAT, **table_of(self), "protocol": self.protocol.name, "parties": parties}

    def digest(self) -> str:
        """SHA-256 of the job's canonical text: the job id every message carries."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @classmethod
    def from_dict(cls, document: object, protocols: Mapping[str, RegressionProtocol]) -> Job:
        """From parsed TOML, with one of *protocols*; every mistake is named, and nothing unknown is passed over."""
        if not isinstance(document, Mapping):
            return read(cls, document, Where("file", say("the job")))
        format = document.get("format", FORMAT)
        if format != FORMAT or type(format) is not int:  # true and 1.0 are equal to 1
            raise SchemaError(
                "The job file has a format this version does not know.",
                say("This velado reads format {format}.", format=FORMAT),
                "Use the same version of velado at all parties.",
            )
        table = {"protocol": DEFAULT_PROTOCOL, **document}
        table.pop("format", None)
        if isinstance(named := table.get("protocol"), str):
            if named not in protocols:
                raise ParameterError(
                    say("There is no protocol {name}.", name=shown(named)),
                    say("It is one of {names}.", names=", ".join(protocols)),
                    nearest(named, protocols) or say("Choose one of them."),
                )
            table["protocol"] = protocols[named]
        return read(cls, table, Where("file", say("the job")))


def _check_limits(job: Job) -> None:
    """What the protocol asks of key, clients and rows, beside the limits of every job."""
    least = job.protocol.least_key_bits
    if job.key_bits < least or job.key_bits % 8:
        raise ParameterError(
            say("A key of {bits} bits is not accepted.", bits=job.key_bits),
            say("Under {least} bits the encryption can be broken, and keys are whole bytes.", least=least),
            "Use 3072, the default.",
        )
    weight = () if job.weight is None else (job.weight,)
    names = [column.name for column in (*job.features, job.target, *weight)]
    if len(set(names)) != len(names):
        raise ParameterError(
            "A column stands twice among the features and the target.",
            "The fit would be singular.",
            "Name each column once.",
        )
    fewest = job.protocol.least_clients
    if job.minimum_clients < fewest:
        raise ParameterError(
            say("A job needs at least {fewest} clients.", fewest=fewest),
            "With two, each could subtract its own rows from the sum and see the other's.",
            say("Set minimum_clients to {fewest} or more.", fewest=fewest),
        )
    together = job.minimum_clients * job.minimum_rows
    if job.most_rows < together:
        raise ParameterError(
            "most_rows is less than minimum_clients times minimum_rows.",
            "It bounds the rows of all clients together, so no run could keep to both.",
            say("Set most_rows to {rows} or more.", rows=str(together)),
        )


def _check_family(job: Job) -> None:
    """What other families and weights ask of protocol, target and weight."""
    if job.iterated and not job.protocol.rounds:
        raise ParameterError(
            say("The protocol {name} fits a linear model without weights only.", name=job.protocol.name),
            "Other families than linear, and weights, take several rounds of sums.",
            "Use secure-sum.",
        )
    job.model.refuse_target(job.target)
    if job.weight is not None and job.weight.low < 0:
        raise ParameterError(
            "Counts and weights cannot be below 0.",
            "They say how many, or how much a row counts.",
            "Set the lower bound to 0.",
        )


def _check_sums(job: Job) -> None:
    """Standard errors and noise need somebody who sees the pooled sums, and do not go together."""
    name, needs = (
        job.protocol.name,
        say("It needs the pooled sums, and this protocol does not give them out."),
    )
    if job.moments and job.protocol.pooled is None:
        raise ParameterError(
            say("The protocol {name} gives no standard errors.", name=name),
            needs,
            "Leave moments out, or use delegated or secure-sum.",
        )
    if job.epsilon is not None and job.rho is not None:
        raise ParameterError(
            "epsilon and rho do not go together.",
            "They are two measures of the same noise.",
            "Give one of them.",
        )
    if job.noise is not None and job.protocol.pooled is None:
        raise ParameterError(
            say("The protocol {name} cannot add noise.", name=name),
            needs,
            "Leave epsilon out, or use delegated or secure-sum.",
        )
    if job.noise is not None and (job.ridge != 0 or not job.intercept or job.weight is not None):
        raise ParameterError(
            "Noise goes with an ordinary fit alone: with an intercept, without lambda and weight.",
            "How much one row can move the sums is worked out for such fits, and the penalty is chosen by the noise itself.",
            "Leave epsilon and rho out, or lambda and weight.",
        )
    if job.noise is not None and not (job.model.sums or job.model.noisy is not None):
        raise ParameterError(
            say("The family {family} cannot be fitted with noise.", family=job.family),
            "How much one row can move its sums was never worked out, so that no noise would be known to hide it.",
            "Leave epsilon out, or choose another family.",
        )
    if job.noise is not None and job.tolerated > len(job.of("client")) - 2:
        raise ParameterError(
            say(
                "With {clients} clients, {tolerated} cannot be tolerated.",
                clients=len(job.of("client")),
                tolerated=job.tolerated,
            ),
            "The noise of at least two others must remain.",
            "Lower tolerated, or add clients.",
        )
    if job.path != "none" and (job.iterated or job.ridge != 0 or not (job.moments or job.noise is not None)):
        raise ParameterError(
            "A path goes with a linear fit whose standard errors are told, or with noise; without lambda and weight.",
            "It follows from the same sums, y'y among them, and brings its own penalties.",
            "Set moments or noise, and leave family, weight and lambda out; or leave path out.",
        )
    if job.folds and (
        job.folds < 3 or job.path == "none" or job.noise is not None or not job.protocol.rounds
    ):
        raise ParameterError(
            "Parts held out in turn go with a path of exact secure sums, and are three or more.",
            "They are summed part by part, each by itself; noise would have to be paid for in every one.",
            "Set path, secure-sum and folds = 5 without noise, or leave folds out: BIC chooses then.",
        )
    if job.moments and (job.ridge != 0 or job.noise is not None):
        raise ParameterError(
            say("Standard errors of exact sums and noise do not go together.")
            if job.ridge == 0
            else say("Standard errors and lambda above 0 do not go together."),
            "The textbook's standard errors are those of least squares; they know neither a penalty's bias nor noise.",
            "Leave moments out: with noise, errors that know of it are told anyway.",
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
            say("The protocol {name} needs one evaluator and one provider.", name=job.protocol.name)
            if needed
            else say("The protocol {name} needs one evaluator and no provider.", name=job.protocol.name),
            "Who holds the key and who holds the encrypted sums must be different parties.",
            "Correct the [[parties]] of the job.",
        )
    if (job.key_holder is not None) != job.protocol.client_holds_key:
        raise ParameterError(
            say("The protocol {name} needs a key_holder.", name=job.protocol.name)
            if job.protocol.client_holds_key
            else say("The protocol {name} has no key_holder.", name=job.protocol.name),
            "All parties must know beforehand who can open what was encrypted.",
            'Write for example key_holder = "north".'
            if job.protocol.client_holds_key
            else "Leave key_holder out, or use delegated-to-client.",
        )
    if job.key_holder is not None and job.key_holder not in [party.name for party in job.of("client")]:
        raise ParameterError(
            "The key_holder is no client of the job.",
            "With this protocol one of the clients makes the key and opens the total.",
            say("Name one of the clients: {names}.", names=", ".join(p.name for p in job.of("client"))),
        )
    if len(job.of("client")) < job.minimum_clients:
        raise ParameterError(
            say("The job names fewer than {fewest} clients.", fewest=job.minimum_clients),
            "So few could work out each other's rows.",
            "Add clients.",
        )
