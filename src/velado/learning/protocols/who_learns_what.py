"""What each party saw in a run, what follows from it, under which assumptions, and which coalitions break it.

These are facts about the protocols, not about one table, and stand with each protocol; every run carries those of its own
(`learned.json`, and a section of the report).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal

from velado.learning.protocols.protocol import RoleName, Seen
from velado.learning.regression.job import LEAST_KEY_BITS, Job
from velado.query.budget import epsilon_of
from velado.text import Language, Sentence, join, say, told

_NOISY_SEEN = Seen(
    saw=say("What the clients sent, hidden, and the pooled sums with the clients' noise in them."),
    infers=say("What the noisy sums say; of one row no more than the promise allows."),
)
_NOISY_HOLDER_SEEN = Seen(
    saw=say(
        "The public key, and at the end {told}; the client that holds the key also the pooled sums with all clients' noise in them."
    ),
    infers=say("What the noisy sums say; of one row no more than the promise allows."),
)
_NOISY_COALITION = say(
    "What a coalition knows of a client's sums has that client's own noise in it, which alone is less than the promise is made for."
)
_NOISY_HIDES = say("each client's rows and sums, from everyone; the exact pooled sums, from everyone")
_CENSUS_SEEN = Seen(
    saw=say(
        "Before these the census: how many pooled rows there are and how many lie away from each bound of a column, from 0 and from 1, "
        "in one column and in every two, and where two columns differ; small numbers too."
    ),
    infers=say("How many rows have what the census counts, few as they may be."),
)
_POINTS_SEEN = Seen(
    saw=say(
        "Every client's masked sums, and of all rows together in the clear, in every round: deviance, gradient and curvature "
        "at the coefficients reached so far."
    ),
    infers=say(
        "How well the model fits at each of these points, and with gradient and curvature more than the coefficients say, of the pooled "
        "rows; no single client's."
    ),
)
_NOISY_POINTS = say(
    "In every round these are gradient and curvature at the coefficients reached so far, each with noise of its own."
)
_PATH_INFERS = say(
    "The pooled X'X and X'y, which follow from exact coefficients at many penalties; nothing of another client's rows beyond them."
)


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What each role of a job's protocol saw and can infer.

    >>> Learned(protocol="p", assumptions="None.", parties={}, coalitions=(), always="Yes.").to_dict()["always"]
    'Yes.'
    """

    protocol: str
    assumptions: str
    parties: Mapping[RoleName, Seen]
    coalitions: tuple[str, ...]
    always: str

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Learned:
        """What `to_dict` wrote, in the language it was written in."""
        seen = {role: Seen(**said) for role, said in document["parties"].items()}
        return cls(**{**document, "parties": seen, "coalitions": tuple(document["coalitions"])})

    def to_dict(self, language: Language = "en") -> dict[str, object]:
        """Plain values for JSON, in a language."""
        return {
            "protocol": self.protocol,
            "assumptions": told(self.assumptions, language),
            "parties": {
                role: {"saw": told(seen.saw, language), "infers": told(seen.infers, language)}
                for role, seen in self.parties.items()
            },
            "coalitions": [told(text, language) for text in self.coalitions],
            "always": told(self.always, language),
        }


@dataclass(frozen=True, kw_only=True)
class NoisePromise:
    """What the noise of a run promises: to whom, for which unit, by which mechanism; *rho* of zCDP implies (epsilon, delta).

    >>> NoisePromise(epsilon="1", delta="1/1000000", rho="0.0175", tolerated=1).measure
    'zCDP'
    """

    epsilon: str
    delta: str
    rho: str
    tolerated: int
    measure: str = "zCDP"
    unit: str = say("one row, added or left out")
    protects: str = say("from everybody, whoever adds the sums included")
    mechanism: str = say("discrete Gaussian noise that the clients add inside the sum, by public bounds")


@dataclass(frozen=True, kw_only=True)
class RunPromise:
    """What holds of a run under stated assumptions ("guaranteed-if"), or that nothing does ("none", as in the paper).

    >>> RunPromise(type="none", warning="Not private.").lines()
    ['Not private: Not private.']
    """

    type: Literal["guaranteed-if", "none"]
    warning: str = ""
    key_warning: str = ""
    hides: str = ""
    reveals: str = ""
    assumptions: str = ""
    exactness: str = ""
    differential_privacy: NoisePromise | None = None

    @property
    def unsafe(self) -> bool:
        """Whether the run promises nothing."""
        return self.type == "none"

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON, in English: what a machine reads."""
        said = {key: value for key, value in asdict(self).items() if value}
        if self.unsafe:
            said |= {"as_in": "paper", "unsafe": True}
        return said

    @classmethod
    def from_dict(cls, document: Mapping[str, object]) -> RunPromise:
        """The promise that `to_dict` wrote; keys it does not know are left out."""
        known = {one.name: document[one.name] for one in fields(cls) if one.name in document}
        noise = known.pop("differential_privacy", None)
        made = NoisePromise(**noise) if isinstance(noise, dict) else None
        return cls(**known, differential_privacy=made)  # type: ignore[arg-type]

    def lines(self) -> list[Sentence]:
        """The promise as sentences for a person."""
        labelled = {
            say("Not private"): self.warning,
            say("Short key"): self.key_warning,
            say("Hides"): self.hides,
            say("Reveals"): self.reveals,
            say("Exactness"): self.exactness,
        }
        lines = [join([label, _ended(text)], ": ") for label, text in labelled.items() if text]
        if self.differential_privacy is not None:
            lines.append(
                say(
                    "Differential privacy: epsilon {epsilon} at delta {delta} (rho {rho}) for {unit}; it protects {protects}, "
                    "as long as at most {tolerated} clients are missing or work together with them; {mechanism}.",
                    **vars(self.differential_privacy),
                )
            )
        if self.assumptions:
            lines.append(say("Guaranteed if: {assumptions}", assumptions=self.assumptions))
        return lines


def _ended(text: str) -> str:
    """The text with one full stop at its end."""
    return text if text.endswith(".") else say("{text}.", text=text)


def _told_to_all(job: Job) -> Sentence:
    """What is told to all who get the result: rows and standard errors are part of it where somebody has them."""
    coefficients = say("the coefficients")
    if job.protocol.pooled is None:
        return coefficients
    if job.noise is not None:
        return say(
            "the coefficients, their errors and the pooled number of rows with noise, rows far out counted in part"
        )
    if job.path != "none":
        return say(
            "the coefficients, the standard errors, R2, variance inflation, the pooled number of rows, and coefficients at "
            "many penalties"
        )
    if job.iterated and job.ridge == 0:
        return say(
            "the coefficients, the standard errors, variance inflation, the deviance and the pooled number of rows"
        )
    if job.moments:
        return say(
            "the coefficients, the standard errors, R2, variance inflation and the pooled number of rows"
        )
    return say("the coefficients and the pooled number of rows")


def _tells_sums(job: Job) -> bool:
    """Whether the result is exact coefficients at so many penalties that the pooled sums follow from them."""
    return job.noise is None and job.path != "none"


def short_key(job: Job) -> str:
    """The warning about a key under 2048 bits, or nothing.

    >>> from velado.learning.regression.simulate import small_job
    >>> short_key(small_job())  # a secure sum has no key
    ''
    """
    if (
        job.protocol.provider is None and not job.protocol.client_holds_key
    ) or job.key_bits >= LEAST_KEY_BITS:
        return ""
    return say(
        "The key has {bits} bits: under 2048 it can be broken, and then all that was encrypted is read.",
        bits=job.key_bits,
    )


def _assumptions(job: Job) -> str:
    """What must hold; of exact sums at one point after another also that the points are Newton's, which nobody else can check."""
    said: list[str] = [job.protocol.facts.assumptions]
    if job.noise is None and not job.model.sums:
        said.append(
            say(
                "An evaluator that names other points than Newton's method could read single rows off two sums; with noise it could not."
            )
        )
    if warning := short_key(job):
        said.append(warning)
    return join(said) if len(said) > 1 else said[0]


def learned(job: Job) -> Learned:
    """What each role of this job's protocol saw and can infer.

    >>> from velado.learning.regression.simulate import small_job
    >>> told(learned(small_job()).coalitions[1])
    "The evaluator and all clients but one know that one's sums."
    """
    facts, to_all = job.protocol.facts, _told_to_all(job)
    noisy = _NOISY_HOLDER_SEEN if job.protocol.client_holds_key else _NOISY_SEEN
    sees: dict[RoleName | None, Seen] = {}
    if job.noise is not None:
        if job.iterated:
            noisy = replace(noisy, saw=join([noisy.saw, _NOISY_POINTS]))
        told_to_clients = replace(facts.parties["client"], infers=_NOISY_SEEN.infers)
        sees = {"client": told_to_clients, job.protocol.pooled: noisy}
    elif job.protocol.pooled is not None and facts.census:
        sees[job.protocol.pooled] = _with_census(job, facts.parties[job.protocol.pooled])
    if _tells_sums(job):
        sees["client"] = replace(facts.parties["client"], infers=_PATH_INFERS)

    def filled(text: str) -> str:
        return say(text, told=to_all) if "{told}" in text else text

    return Learned(
        protocol=job.protocol.name,
        assumptions=_assumptions(job),
        parties={
            role: Seen(saw=filled(seen.saw), infers=filled(seen.infers))
            for role, seen in ((role, sees.get(role, seen)) for role, seen in facts.parties.items())
        },
        coalitions=facts.coalitions if job.noise is None else (*facts.coalitions, _NOISY_COALITION),
        always=say(
            "Whoever knows the coefficients knows what they say of the pooled rows. Two runs that differ by one "
            "client's rows show, by their difference, something of that client."
        ),
    )


def _with_census(job: Job, sums: Seen) -> Seen:
    """What who adds exact sums sees: the sums, or those of every round, of every part, and the census before them."""
    seen = _POINTS_SEEN if job.iterated else sums
    parts = (
        [say("The same of each of the {folds} parts that were held out in turn.", folds=job.folds)]
        if job.folds
        else []
    )
    return Seen(
        saw=join([seen.saw, *parts, _CENSUS_SEEN.saw]), infers=join([seen.infers, _CENSUS_SEEN.infers])
    )


def promise(job: Job) -> RunPromise:
    """The run's promise: guaranteed under the stated assumptions, or none.

    >>> from velado.learning.regression.simulate import small_job
    >>> promise(small_job()).type
    'guaranteed-if'
    """
    facts = job.protocol.facts
    if not facts.hides:
        return RunPromise(type="none", warning=facts.assumptions, key_warning=short_key(job))
    reveals: list[str] = [_told_to_all(job), *([facts.computed] if facts.computed else [])]
    if _tells_sums(job):
        reveals.append(
            say("the pooled sums, to whoever computes them from the coefficients at many penalties")
        )
    if job.folds:
        reveals.append(
            say("the pooled sums of each of {folds} parts of the rows, to the evaluator", folds=job.folds)
        )
    if job.noise is None:
        if facts.census:
            reveals.append(
                say(
                    "how many pooled rows lie away from each bound, from 0 and from 1, in one column and in two (the census), to who "
                    "adds the sums"
                )
            )
        reveals.append(
            say(
                "the pooled sums too, to whoever holds the coefficients, where columns are few and hold whole "
                "numbers of few digits"
            )
        )
        exactness = say(
            "the coefficients are those of exact least squares on the encoded rows, rounded once to floating point"
        )
        if job.iterated:
            reveals.append(
                say("gradient and curvature of the pooled rows at every round's point, to who adds the sums")
            )
            exactness = say(
                "the coefficients are those of the pooled rows, to about a millionth: Newton's method over sums"
            )
    else:
        exactness = say(
            "the coefficients are those of the noisy sums; they may be far from the exact fit where rows are few"
        )
        if job.iterated:
            reveals.append(
                say(
                    "gradient and curvature of the pooled rows at every round's point, with noise, to who adds the sums"
                )
            )
    noise, hides = None, facts.hides
    if _tells_sums(job):
        hides = say("each client's rows and sums, from everyone")
    if (budget := job.noise) is not None:
        hides = _NOISY_HIDES
        rho = budget.total
        epsilon = epsilon_of(rho, job.delta) if job.epsilon is None else float(job.epsilon)
        noise = NoisePromise(
            epsilon=f"{epsilon:.4g}",
            delta=f"{float(job.delta):.3g}",
            rho=f"{float(rho):.4g}",
            tolerated=job.tolerated,
        )
    return RunPromise(
        type="guaranteed-if",
        hides=hides,
        reveals=join(reveals, "; "),
        assumptions=_assumptions(job),
        exactness=exactness,
        differential_privacy=noise,
    )
