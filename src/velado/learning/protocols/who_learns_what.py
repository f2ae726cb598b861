"""What each party saw in a run, what follows from it, under which assumptions, and which coalitions break it.

These are facts about the protocols, not about one table, and stand with each protocol; every run carries those of its own
(`learned.json`, and a section of the report), in English and Portuguese.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from velado.learning.protocols.protocol import RoleName, Text
from velado.learning.regression.job import LEAST_KEY_BITS, Job

Language = Literal["en", "pt"]

_ALWAYS = {
    "en": "Whoever knows the coefficients knows what they say of the pooled rows. Two runs that differ by one client's rows show, by their difference, something of that client.",
    "pt": "Quem conhece os coeficientes sabe o que eles dizem das linhas reunidas. Duas execuções que diferem pelas linhas de um cliente mostram, pela diferença, algo desse cliente.",
}

_TOLD = {
    "en": (
        "the coefficients",
        "the standard errors",
        "the pooled number of rows",
        "the pooled number of rows with noise",
        " and ",
    ),
    "pt": (
        "os coeficientes",
        "os erros padrão",
        "o número de linhas reunidas",
        "o número de linhas reunidas com ruído",
        " e ",
    ),
}
_SHORT_KEY = {
    "en": "The key has {bits} bits: under 2048 it can be broken, and then all that was encrypted is read.",
    "pt": "A chave tem {bits} bits: com menos de 2048 ela pode ser quebrada, e então se lê tudo o que foi cifrado.",
}

_EXCEPT = {
    "en": "the pooled sums too, to whoever holds the coefficients, where columns are few and hold whole numbers of few digits",
    "pt": "também as somas reunidas, a quem tem os coeficientes, onde as colunas são poucas e têm números inteiros de poucos algarismos",
}
_EXACTNESS = {
    "en": "the coefficients are those of exact least squares on the encoded rows, rounded once to floating point",
    "pt": "os coeficientes são os dos mínimos quadrados exatos nas linhas codificadas, arredondados uma vez para ponto flutuante",
}
_NOISY = {
    "en": "the coefficients are those of the noisy sums; they may be far from least squares where rows are few",
    "pt": "os coeficientes são os das somas com ruído; podem estar longe dos mínimos quadrados onde as linhas são poucas",
}
_NOISE = {
    "unit": {"en": "one row, added or left out", "pt": "uma linha, a mais ou a menos"},
    "protects": {
        "en": "from all who see the coefficients and the noisy number of rows alone",
        "pt": "de todos os que veem só os coeficientes e o número de linhas com ruído",
    },
    "mechanism": {
        "en": "discrete Laplace noise on the pooled sums, by public bounds",
        "pt": "ruído de Laplace discreto nas somas reunidas, pelos limites públicos",
    },
}
_NOT_FROM: Mapping[RoleName, Text] = {
    "provider": {"en": "the provider", "pt": "o provedor"},
    "evaluator": {"en": "the evaluator", "pt": "o avaliador"},
}
_LABELS = {
    "en": {
        "hides": "Hides",
        "reveals": "Reveals",
        "exactness": "Exactness",
        "warning": "Not private",
        "key_warning": "Short key",
        "guaranteed": "Guaranteed if: {assumptions}",
        "noise": "Differential privacy: epsilon {epsilon} (pure) for {unit}; it protects {protects}, not from {not_from}; {mechanism}.",
    },
    "pt": {
        "hides": "Esconde",
        "reveals": "Revela",
        "exactness": "Exatidão",
        "warning": "Não é privado",
        "key_warning": "Chave curta",
        "guaranteed": "Garantido se: {assumptions}",
        "noise": "Privacidade diferencial: epsilon {epsilon} (puro) para {unit}; protege {protects}, mas não de: {not_from}; {mechanism}.",
    },
}


def _told(job: Job, language: Language) -> str:
    """What is told to all who get the result: the number of rows and standard errors are part of it where somebody has them."""
    coefficients, errors, rows, noisy, joint = _TOLD[language]
    if job.protocol.pooled is None:
        return coefficients
    count = rows if job.epsilon is None else noisy
    return joint.join([", ".join([coefficients, *([errors] if job.moments else [])]), count])


def _assumptions(job: Job, language: Language) -> str:
    return f"{job.protocol.facts.assumptions[language]} {short_key(job, language)}".rstrip()


def short_key(job: Job, language: Language = "en") -> str:
    """The warning about a key under 2048 bits, or nothing."""
    if job.protocol.provider is None or job.key_bits >= LEAST_KEY_BITS:
        return ""
    return _SHORT_KEY[language].format(bits=job.key_bits)


def learned(job: Job, language: Language = "en") -> dict[str, Any]:
    """What each role of this job's protocol saw and can infer; plain values for JSON."""
    facts, told = job.protocol.facts, _told(job, language)
    return {
        "protocol": job.protocol.name,
        "assumptions": _assumptions(job, language),
        "parties": {
            role: {
                "saw": said.saw[language].replace("{told}", told),
                "infers": said.infers[language].replace("{told}", told),
            }
            for role, said in facts.parties.items()
        },
        "coalitions": [text[language] for text in facts.coalitions],
        "always": _ALWAYS[language],
    }


def promise(job: Job, language: Language = "en") -> dict[str, Any]:
    """The run's promise under keys a machine can read: guaranteed under the stated assumptions, or none."""
    facts = job.protocol.facts
    if facts.hides is None:
        key = {"key_warning": short_key(job, language)} if short_key(job) else {}
        warning = facts.assumptions[language]
        return {"type": "none", "as_in": "paper", "unsafe": True, "warning": warning, **key}
    computed = [] if facts.computed is None else [facts.computed[language]]
    exception = [] if job.epsilon is not None else [_EXCEPT[language]]
    said = {
        "type": "guaranteed-if",
        "hides": facts.hides[language],
        "reveals": "; ".join([_told(job, language), *computed, *exception]),
        "assumptions": _assumptions(job, language),
        "exactness": _EXACTNESS[language],
    }
    if job.epsilon is None or job.protocol.pooled is None:
        return said
    noise = {
        "measure": "pure epsilon",
        "epsilon": str(job.epsilon),
        **{name: text[language] for name, text in _NOISE.items()},
        "not_from": _NOT_FROM[job.protocol.pooled][language],
    }
    return {**said, "exactness": _NOISY[language], "differential_privacy": noise}


def promise_lines(job: Job, language: Language = "en") -> list[str]:
    """The promise as sentences for a person."""
    said, labels = promise(job, language), _LABELS[language]
    keys = ("warning", "key_warning", "hides", "reveals", "exactness")
    lines = [f"{labels[key]}: {said[key].rstrip('.')}." for key in keys if key in said]
    if "differential_privacy" in said:
        lines.append(labels["noise"].format(**said["differential_privacy"]))
    if "assumptions" in said:
        lines.append(labels["guaranteed"].format(assumptions=said["assumptions"]))
    return lines
