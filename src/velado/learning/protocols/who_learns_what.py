"""What each party saw in a run, what follows from it, under which assumptions, and which coalitions break it.

These are facts about the protocols, not about one table, and stand with each protocol; every run carries those of its own
(`learned.json`, and a section of the report).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from velado.learning.protocols.protocol import RoleName, Seen
from velado.learning.regression.job import LEAST_KEY_BITS, Job
from velado.text import Language, Sentence, join, say, told

_NOT_FROM: Mapping[RoleName, str] = {"provider": say("the provider"), "evaluator": say("the evaluator")}


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
    """What noise of a run's epsilon promises: to whom, for which unit, by which mechanism.

    >>> NoisePromise(epsilon="1/2", not_from="the provider").measure
    'pure epsilon'
    """

    epsilon: str
    not_from: str
    measure: str = "pure epsilon"
    unit: str = say("one row, added or left out")
    protects: str = say("from all who see the coefficients and the noisy number of rows alone")
    mechanism: str = say("discrete Laplace noise on the pooled sums, by public bounds")


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
                    "Differential privacy: epsilon {epsilon} (pure) for {unit}; it protects {protects}, not from "
                    "{not_from}; {mechanism}.",
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
    if job.moments:
        return say("the coefficients, the standard errors and the pooled number of rows")
    if job.epsilon is not None:
        return say("the coefficients and the pooled number of rows with noise")
    return say("the coefficients and the pooled number of rows")


def short_key(job: Job) -> str:
    """The warning about a key under 2048 bits, or nothing."""
    if job.protocol.provider is None or job.key_bits >= LEAST_KEY_BITS:
        return ""
    return say(
        "The key has {bits} bits: under 2048 it can be broken, and then all that was encrypted is read.",
        bits=job.key_bits,
    )


def _assumptions(job: Job) -> str:
    warning = short_key(job)
    return join([job.protocol.facts.assumptions, warning]) if warning else job.protocol.facts.assumptions


def learned(job: Job) -> Learned:
    """What each role of this job's protocol saw and can infer."""
    facts, to_all = job.protocol.facts, _told_to_all(job)

    def filled(text: str) -> str:
        return say(text, told=to_all) if "{told}" in text else text

    return Learned(
        protocol=job.protocol.name,
        assumptions=_assumptions(job),
        parties={
            role: Seen(saw=filled(seen.saw), infers=filled(seen.infers))
            for role, seen in facts.parties.items()
        },
        coalitions=facts.coalitions,
        always=say(
            "Whoever knows the coefficients knows what they say of the pooled rows. Two runs that differ by one "
            "client's rows show, by their difference, something of that client."
        ),
    )


def promise(job: Job) -> RunPromise:
    """The run's promise: guaranteed under the stated assumptions, or none."""
    facts = job.protocol.facts
    if not facts.hides:
        return RunPromise(type="none", warning=facts.assumptions, key_warning=short_key(job))
    reveals: list[str] = [_told_to_all(job), *([facts.computed] if facts.computed else [])]
    if job.epsilon is None:
        reveals.append(
            say(
                "the pooled sums too, to whoever holds the coefficients, where columns are few and hold whole "
                "numbers of few digits"
            )
        )
        exactness = say(
            "the coefficients are those of exact least squares on the encoded rows, rounded once to floating point"
        )
    else:
        exactness = say(
            "the coefficients are those of the noisy sums; they may be far from least squares where rows are few"
        )
    noise = None
    if job.epsilon is not None and job.protocol.pooled is not None:
        noise = NoisePromise(epsilon=str(job.epsilon), not_from=_NOT_FROM[job.protocol.pooled])
    return RunPromise(
        type="guaranteed-if",
        hides=facts.hides,
        reveals=join(reveals, "; "),
        assumptions=_assumptions(job),
        exactness=exactness,
        differential_privacy=noise,
    )
