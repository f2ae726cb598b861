"""What each party saw in a run, what follows from it, under which assumptions, and which coalitions break it.

These are facts about the protocols, not about one table; every run carries those of its protocol (`learned.json`, and a
section of the report), in English and Portuguese.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from velado.learning.regression.job import LEAST_KEY_BITS, Job

Language = Literal["en", "pt"]

_MODEL = {
    "en": "Parties follow the protocol but look at all they see (semi-honest); channels are authenticated and encrypted; Paillier's encryption is secure (decisional composite residuosity).",
    "pt": "As partes seguem o protocolo mas olham tudo o que veem (semi-honestas); os canais são autenticados e cifrados; a cifra de Paillier é segura (residuosidade composta decisional).",
}
_MODEL_SUM = {
    "en": "Parties follow the protocol but look at all they see (semi-honest); channels are authenticated and encrypted; X25519, HKDF-SHA-256 and ChaCha20 are secure.",
    "pt": "As partes seguem o protocolo mas olham tudo o que veem (semi-honestas); os canais são autenticados e cifrados; X25519, HKDF-SHA-256 e ChaCha20 são seguros.",
}
_ALWAYS = {
    "en": "Whoever knows the coefficients knows what they say of the pooled rows. Two runs that differ by one client's rows show, by their difference, something of that client.",
    "pt": "Quem conhece os coeficientes sabe o que eles dizem das linhas reunidas. Duas execuções que diferem pelas linhas de um cliente mostram, pela diferença, algo desse cliente.",
}

# {told} is filled in by `_told`: it depends on the job whether standard errors and the number of rows are among it.
_CLIENT = {
    "saw": {
        "en": "The public key, and at the end {told}.",
        "pt": "A chave pública e, no fim, {told}.",
    },
    "infers": {
        "en": "Nothing of another client's rows beyond what these figures say of the pooled rows. Where the columns are few and hold whole numbers of few digits, the coefficients' 53 bits are enough to compute the pooled X'X and X'y.",
        "pt": "Nada das linhas de outro cliente além do que esses números dizem das linhas reunidas. Onde as colunas são poucas e têm números inteiros de poucos algarismos, os 53 bits dos coeficientes bastam para calcular X'X e X'y reunidos.",
    },
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

_FACTS: Mapping[str, Mapping[str, Any]] = {
    "delegated": {
        "assumptions": _MODEL,
        "parties": {
            "client": _CLIENT,
            "evaluator": {
                "saw": {
                    "en": "Every client's encrypted sums, their sizes and times, and at the end {told}.",
                    "pt": "As somas cifradas de cada cliente, seus tamanhos e horários e, no fim, {told}.",
                },
                "infers": {
                    "en": "Who took part; of the rows, what a client can infer.",
                    "pt": "Quem participou; das linhas, o que um cliente pode inferir.",
                },
            },
            "provider": {
                "saw": {
                    "en": "The pooled second moments of all rows in the clear: X'X, X'y, the number of rows and, where asked for, y'y.",
                    "pt": "Os segundos momentos reunidos de todas as linhas, às claras: X'X, X'y, o número de linhas e, se pedido, y'y.",
                },
                "infers": {
                    "en": "Every mean, variance and correlation of the pooled rows; no single client's, unless all others tell theirs.",
                    "pt": "Toda média, variância e correlação das linhas reunidas; de nenhum cliente em particular, salvo se todos os outros contarem as suas.",
                },
            },
        },
        "coalitions": {
            "en": [
                "Evaluator and provider together decrypt every client's own sums.",
                "The provider and all clients but one know that one's sums.",
            ],
            "pt": [
                "Avaliador e provedor juntos decifram as somas de cada cliente.",
                "O provedor e todos os clientes menos um conhecem as somas desse um.",
            ],
        },
    },
    "masked": {
        "assumptions": _MODEL,
        "parties": {
            "client": _CLIENT,
            "evaluator": {
                "saw": {
                    "en": "Every client's encrypted sums, the provider's masked solution, and the exact rational coefficients.",
                    "pt": "As somas cifradas de cada cliente, a solução mascarada do provedor e os coeficientes racionais exatos.",
                },
                "infers": {
                    "en": "The pooled X'X and X'y, by computation: exact coefficients determine them, and lattice reduction finds them in seconds (velado.papers.regression.mask_attacks does it). Count the evaluator as knowing every mean, variance and correlation of the pooled rows; no single client's.",
                    "pt": "X'X e X'y reunidos, por cálculo: coeficientes exatos os determinam, e a redução de reticulados os acha em segundos (velado.papers.regression.mask_attacks o faz). Conte com que o avaliador conheça toda média, variância e correlação das linhas reunidas; de nenhum cliente em particular.",
                },
            },
            "provider": {
                "saw": {
                    "en": "C = A R and d = b + A r modulo n, where R is a uniformly random invertible matrix and r a uniformly random vector.",
                    "pt": "C = A R e d = b + A r módulo n, onde R é uma matriz invertível uniformemente aleatória e r um vetor uniformemente aleatório.",
                },
                "infers": {
                    "en": "Nothing but whether A is invertible: for invertible A, C and d are uniform whatever A and b are.",
                    "pt": "Nada além de A ser ou não invertível: com A invertível, C e d são uniformes quaisquer que sejam A e b.",
                },
            },
        },
        "coalitions": {
            "en": [
                "Evaluator and provider together learn everything: each client's sums in the clear.",
                "The evaluator and all clients but one know that one's sums: the pooled ones less their own.",
            ],
            "pt": [
                "Avaliador e provedor juntos sabem tudo: as somas de cada cliente às claras.",
                "O avaliador e todos os clientes menos um conhecem as somas desse um: as reunidas menos as suas.",
            ],
        },
    },
    "secure-sum": {
        "assumptions": _MODEL_SUM,
        "parties": {
            "client": {
                "saw": {
                    "en": "The other clients' public keys and encrypted shares, and at the end {told}.",
                    "pt": "As chaves públicas e as partes cifradas dos outros clientes e, no fim, {told}.",
                },
                "infers": _CLIENT["infers"],
            },
            "evaluator": {
                "saw": {
                    "en": "Every client's masked sums, and the pooled second moments in the clear: X'X, X'y, the number of rows and, where asked for, y'y.",
                    "pt": "As somas mascaradas de cada cliente e os segundos momentos reunidos, às claras: X'X, X'y, o número de linhas e, se pedido, y'y.",
                },
                "infers": {
                    "en": "Every mean, variance and correlation of the pooled rows; no single client's.",
                    "pt": "Toda média, variância e correlação das linhas reunidas; de nenhum cliente em particular.",
                },
            },
        },
        "coalitions": {
            "en": [
                "The evaluator with enough clients to pass the recovery threshold unmasks any client's sums.",
                "The evaluator and all clients but one know that one's sums.",
            ],
            "pt": [
                "O avaliador com clientes bastantes para o limiar de recuperação desmascara as somas de qualquer cliente.",
                "O avaliador e todos os clientes menos um conhecem as somas desse um.",
            ],
        },
    },
    "paper-masked": {
        "assumptions": {
            "en": "None is enough: the source's multiplicative masks cancel. Reproduced for science; not private.",
            "pt": "Nenhuma basta: as máscaras multiplicativas da fonte se cancelam. Reproduzido para a ciência; não é privado.",
        },
        "parties": {
            "client": {
                "saw": _CLIENT["saw"],
                "infers": {
                    "en": "With negative values, the shift M: the least value among all clients.",
                    "pt": "Com valores negativos, o deslocamento M: o menor valor entre todos os clientes.",
                },
            },
            "evaluator": {
                "saw": {
                    "en": "Every client's encrypted sums, and the solutions of both masked systems.",
                    "pt": "As somas cifradas de cada cliente e as soluções dos dois sistemas mascarados.",
                },
                "infers": {
                    "en": "D linear equations in A with every run: after D - 1 runs all of X'X.",
                    "pt": "D equações lineares em A a cada execução: após D - 1 execuções, todo o X'X.",
                },
            },
            "provider": {
                "saw": {
                    "en": "The masked matrix and both masked vectors in the clear; with negative values each client's least value.",
                    "pt": "A matriz mascarada e os dois vetores mascarados às claras; com valores negativos, o menor valor de cada cliente.",
                },
                "infers": {
                    "en": "Every correlation of the design from one run: a~_ij a~_ji / (a~_ii a~_jj) = a_ij^2 / (a_ii a_jj).",
                    "pt": "Toda correlação do modelo com uma só execução: a~_ij a~_ji / (a~_ii a~_jj) = a_ij^2 / (a_ii a_jj).",
                },
            },
        },
        "coalitions": {
            "en": ["No coalition is needed: provider and evaluator each learn it alone."],
            "pt": ["Não é preciso conluio: provedor e avaliador aprendem sozinhos."],
        },
    },
}


_HIDES = {
    "delegated": {
        "en": "each client's rows and sums, from everyone; the pooled sums, from all but the provider",
        "pt": "as linhas e as somas de cada cliente, de todos; as somas reunidas, de todos menos do provedor",
    },
    "masked": {
        "en": "each client's rows and sums, from everyone; the pooled sums, from the provider and the clients",
        "pt": "as linhas e as somas de cada cliente, de todos; as somas reunidas, do provedor e dos clientes",
    },
    "secure-sum": {
        "en": "each client's rows and sums, from everyone; the pooled sums, from all but the evaluator",
        "pt": "as linhas e as somas de cada cliente, de todos; as somas reunidas, de todos menos do avaliador",
    },
}
_EXCEPT = {
    "en": "the pooled sums too, to whoever holds the coefficients, where columns are few and hold whole numbers of few digits",
    "pt": "também as somas reunidas, a quem tem os coeficientes, onde as colunas são poucas e têm números inteiros de poucos algarismos",
}
_BY_COMPUTATION = {
    "en": "the pooled sums, to the evaluator, who can compute them from the exact coefficients",
    "pt": "as somas reunidas, ao avaliador, que pode calculá-las dos coeficientes exatos",
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
_NOT_FROM = {
    "delegated": {"en": "the provider", "pt": "o provedor"},
    "secure-sum": {"en": "the evaluator", "pt": "o avaliador"},
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
    if job.protocol not in ("delegated", "secure-sum"):
        return coefficients
    count = rows if job.epsilon is None else noisy
    return joint.join([", ".join([coefficients, *([errors] if job.moments else [])]), count])


def _assumptions(job: Job, language: Language) -> str:
    said: str = _FACTS[job.protocol]["assumptions"][language]
    return f"{said} {short_key(job, language)}".rstrip()


def short_key(job: Job, language: Language = "en") -> str:
    """The warning about a key under 2048 bits, or nothing."""
    if job.protocol == "secure-sum" or job.key_bits >= LEAST_KEY_BITS:
        return ""
    return _SHORT_KEY[language].format(bits=job.key_bits)


def learned(job: Job, language: Language = "en") -> dict[str, Any]:
    """What each role of this job's protocol saw and can infer; plain values for JSON."""
    facts = _FACTS[job.protocol]
    told = _told(job, language)
    return {
        "protocol": job.protocol,
        "assumptions": _assumptions(job, language),
        "parties": {
            role: {key: text[language].replace("{told}", told) for key, text in said.items()}
            for role, said in facts["parties"].items()
        },
        "coalitions": list(facts["coalitions"][language]),
        "always": _ALWAYS[language],
    }


def promise(job: Job, language: Language = "en") -> dict[str, Any]:
    """The run's promise under keys a machine can read: guaranteed under the stated assumptions, or none."""
    key = {"key_warning": short_key(job, language)} if short_key(job) else {}
    if job.protocol == "paper-masked":
        warning = _FACTS["paper-masked"]["assumptions"][language]
        return {"type": "none", "as_in": "paper", "unsafe": True, "warning": warning, **key}
    computed = [_BY_COMPUTATION[language]] if job.protocol == "masked" else []
    exception = [] if job.epsilon is not None else [_EXCEPT[language]]
    said = {
        "type": "guaranteed-if",
        "hides": _HIDES[job.protocol][language],
        "reveals": "; ".join([_told(job, language), *computed, *exception]),
        "assumptions": _assumptions(job, language),
        "exactness": _EXACTNESS[language],
    }
    if job.epsilon is None:
        return said
    noise = {
        "measure": "pure epsilon",
        "epsilon": str(job.epsilon),
        **{name: text[language] for name, text in _NOISE.items()},
        "not_from": _NOT_FROM[job.protocol][language],
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
