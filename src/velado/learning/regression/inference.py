"""A score for rows nobody shows: the client encrypts its features, the model's owner computes on them, the client decrypts.

With features x_j in fixed point of q bits and coefficients c_j = round(beta_j 2^Q), the owner returns

    E(c_0 2^q + sum_j c_j x_j),    the score times 2^(q + Q),

under the client's own key and a fresh obfuscator. Who learns what: the owner sees how many rows were asked about and
nothing of them; the client gets the scores and nothing else of the model from one answer, but D + 1 answers to rows of
its choice are D + 1 linear equations in the coefficients: whoever may ask that often can work the model out. Both
are assumed to follow the protocol: the owner cannot see whether features lie within their bounds, and a client that
makes its key so that it can be broken harms itself. Whatever a score says about a person, the client learns it.

|score| <= |c_0| 2^q + sum_j |c_j| B_j from the model and the public bounds: a key that cannot hold it is refused before
anything is computed. Bytes are versioned; an answer is bound to its question by a digest. Cost for each row: the client
D encryptions and one decryption, the owner one product of D powers of Q + bits(beta) bits and one obfuscator.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from velado.errors import InputError, ParameterError, PlaintextOverflow, ProtocolError, SchemaError
from velado.learning.crypto.fixed_point import Bounded, Columns, FixedPoint
from velado.learning.crypto.modular import Source
from velado.learning.crypto.obfuscators import FullPower, ObfuscatorPool, OwnerPower
from velado.learning.crypto.paillier import (
    add_plain,
    ciphertexts_from_bytes,
    ciphertexts_size,
    ciphertexts_to_bytes,
    decrypt_many,
    dot,
    encrypt_many,
    key_from_bytes,
    key_to_bytes,
    obfuscate,
)
from velado.learning.crypto.paillier_keys import LEAST_BITS, PrivateKey, PublicKey
from velado.learning.regression.families import FAMILIES
from velado.learning.regression.fit import Fit
from velado.learning.regression.job import INTERCEPT
from velado.settings import Setting, Where, settings, table_of
from velado.settings import read as _read
from velado.text import say

VERSION = 1
_ASKED, _ANSWERED = 1, 2
_HEAD = 2 + 32


_ScoreFamily = Annotated[
    str, Setting("what the asker does with a score: see the job", choices=lambda: FAMILIES)
]


@settings
class ScoringTerms:
    """What client and owner agree on beforehand: the features with their public bounds, and how finely numbers are encoded.

    They tell what the model explains and by what, and nothing of its coefficients.

    >>> ScoringTerms((Bounded("age", (0, 120)),)).encoding.reach("age")  # 120 x 2^20
    125829120
    """

    features: Annotated[tuple[Bounded, ...], Setting("the columns the model explains its target by", items=1)]
    bits: Annotated[int, Setting("fractional bits of a feature", ge=0, le=512)] = 20
    coefficient_bits: Annotated[int, Setting("fractional bits of a coefficient")] = 40
    most_rows: Annotated[int, Setting("most rows of one question")] = 1000
    key_bits: Annotated[int, Setting("fewest bits of the asker's key")] = LEAST_BITS
    target: Annotated[str, Setting("what the model explains")] = ""
    family: _ScoreFamily = "linear"

    def __post_init__(self) -> None:
        names = [feature.name for feature in self.features]
        if not names or len(set(names)) != len(names) or self.most_rows < 1 or self.key_bits < LEAST_BITS:
            raise ParameterError(
                "The terms name no feature, one twice, no rows, or a key under 2048 bits.",
                "Client and owner could not work with them.",
                "Name every feature once, at least one row, and a key of 2048 bits or more.",
            )
        if not 0 <= self.coefficient_bits <= 512:
            raise ParameterError(
                say(
                    "{coefficient_bits} bits for coefficients are not accepted.",
                    coefficient_bits=self.coefficient_bits,
                ),
                "They say how finely the model is encoded: 0 to 512.",
                "Use 40, the default.",
            )
        _ = self.encoding

    @property
    def encoding(self) -> FixedPoint:
        """The fixed point of the features."""
        return FixedPoint(self.features, self.bits)

    def digest(self) -> bytes:
        """SHA-256 of the terms: both sides must hold the same."""
        text = json.dumps(self.to_dict(), sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).digest()

    @classmethod
    def of(cls, fit: Fit) -> ScoringTerms:
        """The terms under which a model can be asked: fine enough that a score is the plain one to about 12 digits.

        >>> from velado.learning.protocols.parts import fit_of
        >>> from velado.learning.regression.fit import Solved
        >>> from velado.learning.regression.simulate import small_job
        >>> ScoringTerms.of(fit_of(small_job(), Solved(coefficients=(1.0, 0.5)))).target
        'y'
        """
        return cls(fit.features, bits=64, coefficient_bits=96, target=fit.target, family=fit.family)

    def to_dict(self) -> dict[str, object]:
        """As the offer's file has it."""
        return {"offer": VERSION, **table_of(self)}

    @classmethod
    def from_dict(cls, document: object) -> ScoringTerms:
        """From such a file; every mistake is named.

        >>> terms = ScoringTerms((Bounded("age", (0, 120)),))
        >>> ScoringTerms.from_dict(terms.to_dict()) == terms
        True
        """
        where = Where("file", say("the offer"))
        if not isinstance(document, Mapping) or document.get("offer") != VERSION:
            raise SchemaError(
                "This is not an offer to score rows, or one of another version.",
                "An offer says which features a model has, and within which bounds.",
                "Ask the model's owner for the file that `velado predict --encrypted offer` wrote.",
            )
        return _read(cls, {key: value for key, value in document.items() if key != "offer"}, where)


def asked_rows(terms: ScoringTerms, question: bytes) -> int:
    """How many rows a question is about, if it was made for these terms.

    >>> asked_rows(ScoringTerms((Bounded("x", (-8, 8)),)), b"nonsense")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ProtocolError: The message is of no version or kind that is known...
    """
    if len(question) < _HEAD + 8 or question[:2] != bytes([VERSION, _ASKED]):
        raise _refused(say("The message is of no version or kind that is known."))
    if question[2:_HEAD] != terms.digest():
        raise _refused(say("The message was made for other terms."))
    rows = int.from_bytes(question[_HEAD : _HEAD + 4], "big")
    if not 1 <= rows <= terms.most_rows:
        raise _refused(say("The message has more rows than the terms allow, none, or is cut short."))
    return rows


def ask(terms: ScoringTerms, private: PrivateKey, columns: Columns, random: Source | None = None) -> bytes:
    """The question: the client's public key, and every feature of every row encrypted under it.

    >>> from velado.learning.crypto.paillier_keys import keygen
    >>> from velado.randomness import Tape
    >>> terms = ScoringTerms((Bounded("x", (-8, 8)),))
    >>> len(ask(terms, keygen(2048, Tape(bytes(32))), {"x": [3.0]}))  # a head, the key, one ciphertext
    854
    """
    absent = [f.name for f in terms.features if f.name not in columns]
    if absent:
        raise SchemaError(
            say("The rows lack {absent}.", absent=", ".join(absent)),
            "The model needs these features.",
            "Give every feature.",
        )
    encoded = [terms.encoding.encode(f.name, columns[f.name]).tolist() for f in terms.features]
    rows = len(encoded[0])
    if any(len(column) != rows for column in encoded) or not 1 <= rows <= terms.most_rows:
        raise InputError(
            say(
                "A question has 1 to {most_rows} rows, and one value of each feature in a row.",
                most_rows=terms.most_rows,
            ),
            "The terms say so.",
            "Ask about fewer rows at a time, with columns of equal length.",
        )
    key = private.public
    numbers = [column[row] for row in range(rows) for column in encoded]
    sent = encrypt_many(key, numbers, ObfuscatorPool(OwnerPower(private, random)))
    written = key_to_bytes(key)
    head = (
        bytes([VERSION, _ASKED]) + terms.digest() + rows.to_bytes(4, "big") + len(written).to_bytes(4, "big")
    )
    return head + written + ciphertexts_to_bytes(key, sent)


def answer(terms: ScoringTerms, fit: Fit, question: bytes, random: Source | None = None) -> bytes:
    """The encrypted score of every row in a question, re-randomised.

    >>> from velado.learning.crypto.paillier_keys import keygen
    >>> from velado.learning.protocols.parts import fit_of
    >>> from velado.learning.regression.fit import Solved
    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.randomness import Tape
    >>> terms, fit = ScoringTerms((Bounded("x", (-8, 8)),)), fit_of(small_job(), Solved(coefficients=(1.0, 0.5)))
    >>> private = keygen(2048, Tape(bytes(32)))
    >>> question = ask(terms, private, {"x": [3.0]})
    >>> read(terms, private, question, answer(terms, fit, question))  # 1 + 0.5 x 3
    array([2.5])
    """
    factors, constant = coefficients_of(terms, fit)
    rows = asked_rows(terms, question)
    end = _HEAD + 8 + int.from_bytes(question[_HEAD + 4 : _HEAD + 8], "big")
    if end > len(question):
        raise _refused(say("The message has more rows than the terms allow, none, or is cut short."))
    key = key_from_bytes(question[_HEAD + 8 : end], terms.key_bits)
    width = len(terms.features)
    if len(question) != end + ciphertexts_size(key, rows * width):
        raise _refused(say("The message is cut short, or too long."))
    refuse_overflow(terms, fit, key)
    features = ciphertexts_from_bytes(key, question[end:], rows * width)
    scores = [
        add_plain(dot(features[row * width : (row + 1) * width], factors), constant) for row in range(rows)
    ]
    told = obfuscate(scores, ObfuscatorPool(FullPower(key, random)))
    return bytes([VERSION, _ANSWERED]) + hashlib.sha256(question).digest() + ciphertexts_to_bytes(key, told)


def read(terms: ScoringTerms, private: PrivateKey, question: bytes, answered: bytes) -> NDArray[np.float64]:
    """The scores in the answer to a question of ours.

    >>> from velado.learning.crypto.paillier_keys import keygen
    >>> from velado.learning.protocols.parts import fit_of
    >>> from velado.learning.regression.fit import Solved
    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.randomness import Tape
    >>> terms, fit = ScoringTerms((Bounded("x", (-8, 8)),)), fit_of(small_job(), Solved(coefficients=(1.0, 0.5)))
    >>> private = keygen(2048, Tape(bytes(32)))
    >>> read(terms, private, ask(terms, private, {"x": [3.0]}), b"of somebody else")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.ProtocolError: The message is no answer to this question...
    """
    if answered[:2] != bytes([VERSION, _ANSWERED]) or answered[2:_HEAD] != hashlib.sha256(question).digest():
        raise _refused(say("The message is no answer to this question."))
    rows = int.from_bytes(question[_HEAD : _HEAD + 4], "big")
    numbers = decrypt_many(private, ciphertexts_from_bytes(private.public, answered[_HEAD:], rows))
    unit = 1 << (terms.bits + terms.coefficient_bits)
    try:
        return np.array([float(Fraction(number, unit)) for number in numbers], dtype=np.float64)
    except OverflowError:
        raise _refused(say("The message holds a score that is no number a model gives.")) from None


def coefficients_of(terms: ScoringTerms, fit: Fit) -> tuple[list[int], int]:
    """round(beta_j 2^Q) in the order of the terms' features, and the intercept times 2^(q + Q).

    >>> from velado.learning.protocols.parts import fit_of
    >>> from velado.learning.regression.fit import Solved
    >>> from velado.learning.regression.simulate import small_job
    >>> terms, fit = ScoringTerms((Bounded("x", (-8, 8)),)), fit_of(small_job(), Solved(coefficients=(1.0, 0.5)))
    >>> coefficients_of(terms, fit) == ([2**39], 2**60)
    True
    """
    named = dict(zip(fit.names, fit.coefficients, strict=True))
    constant = named.pop(INTERCEPT, 0.0)
    if set(named) != {f.name for f in terms.features}:
        raise SchemaError(
            "The model's features are not those of the terms.",
            "Scores would mean something else.",
            "Agree on the terms for this model.",
        )
    unit = 1 << terms.coefficient_bits
    factors = [round(Fraction(named[f.name]) * unit) for f in terms.features]
    return factors, round(Fraction(constant) * unit) << terms.bits


def refuse_overflow(terms: ScoringTerms, fit: Fit, key: PublicKey) -> None:
    """Raise where a score within the public bounds might not fit the key's plaintexts.

    >>> from velado.learning.protocols.parts import fit_of
    >>> from velado.learning.regression.fit import Solved
    >>> from velado.learning.regression.simulate import small_job
    >>> terms, fit = ScoringTerms((Bounded("x", (-8, 8)),)), fit_of(small_job(), Solved(coefficients=(1.0, 0.5)))
    >>> refuse_overflow(terms, fit, PublicKey(1009 * 1019))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    velado.errors.PlaintextOverflow: A score may need 64 bits and the key holds 19...
    """
    factors, constant = coefficients_of(terms, fit)
    encoding = terms.encoding
    most = abs(constant) + sum(
        abs(c) * encoding.reach(f.name) for c, f in zip(factors, terms.features, strict=True)
    )
    if most > key.half:
        raise PlaintextOverflow(
            say(
                "A score may need {bit_length} bits and the key holds {bits}.",
                bit_length=most.bit_length() + 1,
                bits=key.bits - 1,
            ),
            "It would come back as another number.",
            "Use a longer key, fewer bits, or tighter bounds.",
        )


class Asker:
    """The client's side with its key and the questions that are not answered yet; an answer is read once.

    >>> from velado.learning.crypto.paillier_keys import keygen
    >>> from velado.learning.protocols.parts import fit_of
    >>> from velado.learning.regression.fit import Solved
    >>> from velado.learning.regression.simulate import small_job
    >>> from velado.randomness import Tape
    >>> terms, fit = ScoringTerms((Bounded("x", (-8, 8)),)), fit_of(small_job(), Solved(coefficients=(1.0, 0.5)))
    >>> asker = Asker(terms, keygen(2048, Tape(bytes(32))))
    >>> asker.read(answer(terms, fit, asker.ask({"x": [3.0]})))
    array([2.5])
    """

    def __init__(self, terms: ScoringTerms, private: PrivateKey, random: Source | None = None) -> None:
        self.terms, self._private, self._random = terms, private, random
        self._open: dict[bytes, bytes] = {}

    def ask(self, columns: Columns) -> bytes:
        """A question about these rows."""
        question = ask(self.terms, self._private, columns, self._random)
        self._open[hashlib.sha256(question).digest()] = question
        return question

    def read(self, answered: bytes) -> NDArray[np.float64]:
        """The scores, if it answers a question that is open."""
        question = self._open.get(answered[2:_HEAD])
        if question is None:
            raise _refused(say("The message answers no question that is open."))
        scores = read(self.terms, self._private, question, answered)
        del self._open[answered[2:_HEAD]]
        return scores


def _refused(what: str) -> ProtocolError:
    return ProtocolError(
        what,
        "Working with it would give a number that means nothing.",
        "Check that both sides use the same terms and version, and ask again.",
    )
