"""What each party saw in a run, what follows from it, under which assumptions, and which coalitions break it.

These are facts about the protocols, not about one table; every run carries those of its protocol (`learned.json`, and a
section of the report), in English and Portuguese.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from velado.encrypted.job import Job

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

_CLIENT = {
    "saw": {
        "en": "The public key, and the coefficients at the end.",
        "pt": "A chave pública e, no fim, os coeficientes.",
    },
    "infers": {
        "en": "Nothing of another client's rows beyond the coefficients.",
        "pt": "Nada das linhas de outro cliente além dos coeficientes.",
    },
}

_FACTS: Mapping[str, Mapping[str, Any]] = {
    "delegated": {
        "assumptions": _MODEL,
        "parties": {
            "client": _CLIENT,
            "evaluator": {
                "saw": {
                    "en": "Every client's encrypted sums, their sizes and times, and the coefficients.",
                    "pt": "As somas cifradas de cada cliente, seus tamanhos e horários, e os coeficientes.",
                },
                "infers": {
                    "en": "Nothing beyond the coefficients and who took part.",
                    "pt": "Nada além dos coeficientes e de quem participou.",
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
                    "en": "The coefficients exactly. Their common denominator divides the determinant of X'X, which says more of X'X than rounded coefficients would; clients get rounded ones.",
                    "pt": "Os coeficientes exatos. O denominador comum divide o determinante de X'X, o que diz mais de X'X do que coeficientes arredondados; os clientes recebem os arredondados.",
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
                "The evaluator with clients learns no more than the coefficients and those clients' own sums.",
            ],
            "pt": [
                "Avaliador e provedor juntos sabem tudo: as somas de cada cliente às claras.",
                "O avaliador com clientes não sabe mais que os coeficientes e as somas desses clientes.",
            ],
        },
    },
    "secure-sum": {
        "assumptions": _MODEL_SUM,
        "parties": {
            "client": {
                "saw": {
                    "en": "The other clients' public keys and encrypted shares, and the coefficients at the end.",
                    "pt": "As chaves públicas e as partes cifradas dos outros clientes e, no fim, os coeficientes.",
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


def learned(job: Job, language: Language = "en") -> dict[str, Any]:
    """What each role of this job's protocol saw and can infer; plain values for JSON."""
    facts = _FACTS[job.protocol]
    return {
        "protocol": job.protocol,
        "assumptions": facts["assumptions"][language],
        "parties": {
            role: {key: text[language] for key, text in said.items()}
            for role, said in facts["parties"].items()
        },
        "coalitions": list(facts["coalitions"][language]),
        "always": _ALWAYS[language],
    }


def promise(job: Job) -> dict[str, Any]:
    """The run's promise in words a machine can read: guaranteed under the stated assumptions, or none."""
    if job.protocol == "paper-masked":
        return {
            "type": "none",
            "as_in": "paper",
            "unsafe": True,
            "warning": _FACTS["paper-masked"]["assumptions"]["en"],
        }
    hidden = {
        "delegated": "each client's rows and sums, from everyone; the pooled sums, from all but the provider",
        "masked": "each client's rows and sums and the pooled sums, from everyone",
        "secure-sum": "each client's rows and sums, from everyone; the pooled sums, from all but the evaluator",
    }[job.protocol]
    said = {
        "type": "guaranteed-if",
        "hides": hidden,
        "reveals": "the coefficients",
        "assumptions": _FACTS[job.protocol]["assumptions"]["en"],
        "exactness": "the coefficients are those of exact least squares on the encoded rows, rounded once to floating point",
    }
    if job.epsilon is None:
        return said
    return {
        **said,
        "exactness": "the coefficients are those of the noisy sums; they may be far from least squares where rows are few",
        "differential_privacy": {
            "measure": "pure epsilon",
            "epsilon": str(job.epsilon),
            "unit": "one row, added or left out",
            "protects": "from all who see the coefficients alone",
            "not_from": "the provider" if job.protocol == "delegated" else "the evaluator",
            "mechanism": "discrete Laplace noise on the pooled sums, by public bounds",
        },
    }
