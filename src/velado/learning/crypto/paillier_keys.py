"""A private key as bytes that only its passphrase opens: scrypt makes a key of the passphrase, AES-256-GCM seals.

Layout: magic (8), version (1), log2 of scrypt's N (1), r (1), p (1), salt (16), nonce (12), fingerprint of the public key
(32), sealed factors. Everything before the sealed part is authenticated with it. scrypt (RFC 7914) with N = 2^17, r = 8,
p = 1 takes some 0.4 s and 128 MB for each guess; N from 2^15 to 2^18 is accepted, so that a forged file cannot ask for
all memory. A wrong passphrase and a changed byte look the same: KeyRefused. Writing the file, readable by its owner
alone, is done in `velado.learning.net`.
"""

from __future__ import annotations

import hashlib
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property

import gmpy2
from gmpy2 import mpz

from velado.errors import KeyRefused, MissingExtra
from velado.learning.crypto.modular import Source, Whole, uniform
from velado.randomness import secure
from velado.text import say

# Paillier keys with g = n + 1: made, checked, and told apart by a fingerprint.
#
# n = p q with primes of equal length, gcd(n, (p-1)(q-1)) = 1 (Paillier 1999). Ours are also Blum numbers with
# gcd(p-1, q-1) = 2, which the short-exponent obfuscators of Damgard, Jurik and Nielsen (2010) ask for. The plaintext
# modulo n is found modulo p and modulo q (Paillier, section 7): m_p = L_p(c^(p-1) mod p^2) h_p mod p with
# L_p(x) = (x-1)/p and, since g = n + 1, h_p = -1/q mod p. That is two powers of half the length modulo half the size.

DEFAULT_BITS = 3072
LEAST_BITS = 2048
SHORTEST_BITS = 1024
MOST_BITS = 16384
_ROUNDS = 40


@cache
def _small_primes() -> Whole:
    """The product of all primes under 2^14: one gcd finds a small factor."""
    return gmpy2.primorial(1 << 14)


def _unsound(what: str, fix: str = say("Ask its owner for the key again, or make a new one.")) -> KeyRefused:
    """The error of a key that is not what it must be; it holds nothing of the key."""
    return KeyRefused(
        what, "What is encrypted under such a key can be read by others, or never read again.", fix
    )


@dataclass(frozen=True, repr=False)
class PublicKey:
    """The modulus n with which anyone encrypts and adds; `validate()` before the first use of one that arrived.

    >>> PublicKey(1009 * 1019).bits
    20
    """

    n: Whole
    bits: int = field(init=False, compare=False)
    n2: Whole = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int | type(mpz())) or self.n < 6:
            raise _unsound(say("The modulus of a key is not a positive whole number."))
        object.__setattr__(self, "n", mpz(self.n))
        object.__setattr__(self, "bits", self.n.bit_length())
        object.__setattr__(self, "n2", self.n * self.n)

    def __repr__(self) -> str:
        return f"PublicKey({self.bits} bits, fingerprint {self.fingerprint.hex()[:16]})"

    @cached_property
    def half(self) -> Whole:
        """The largest plaintext in size: signed plaintexts lie in -half ... half."""
        return (self.n - 1) // 2

    @cached_property
    def canonical(self) -> bytes:
        """n as the fewest big-endian bytes, after their count in four bytes: one key, one text."""
        size = (self.bits + 7) // 8
        return size.to_bytes(4, "big") + int(self.n).to_bytes(size, "big")

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the canonical bytes."""
        return hashlib.sha256(b"velado paillier public key" + self.canonical).digest()

    def validate(self, minimum_bits: int = LEAST_BITS) -> PublicKey:
        """The key itself, if n is odd, long enough, and neither prime, nor a power, nor with a small factor; else KeyRefused.

        What cannot be seen from n alone: that it has just two factors, of equal length, and is coprime to its totient.
        A key that lacks these harms its owner's own secrets or fails to decrypt; it opens nothing to third parties.
        """
        n = self.n
        if self.bits < minimum_bits:
            short = say("The key has {bits} bits; {least} are needed.", bits=self.bits, least=minimum_bits)
            raise _unsound(short, say("Use a key of 3072 bits."))
        if self.bits > MOST_BITS:
            long = say(
                "The key has {bits} bits; more than {most} are not accepted.", bits=self.bits, most=MOST_BITS
            )
            raise _unsound(long)
        if gmpy2.is_even(n):
            raise _unsound(say("The modulus of the key is even."))
        if gmpy2.gcd(n, _small_primes()) != 1:
            raise _unsound(say("The modulus of the key has a small prime factor."))
        if gmpy2.is_power(n):
            raise _unsound(say("The modulus of the key is a power of another number."))
        if gmpy2.is_prime(n, _ROUNDS):
            raise _unsound(say("The modulus of the key is a prime."))
        return self


@dataclass(frozen=True, repr=False)
class PrivateKey:
    """The two primes, with what decryption needs of them worked out once. Its text form shows the fingerprint alone.

    >>> int(PrivateKey(1009, 1019).public.n)
    1028171
    """

    p: Whole
    q: Whole

    def __post_init__(self) -> None:
        for name in ("p", "q"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | type(mpz())) or value < 3:
                raise _unsound(say("A factor of the private key is not a positive whole number."))
            object.__setattr__(self, name, mpz(value))
        p, q = self.p, self.q
        if p == q or gmpy2.is_even(p) or gmpy2.is_even(q) or gmpy2.gcd(p * q, (p - 1) * (q - 1)) != 1:
            raise _unsound(say("The factors of the private key do not make a Paillier key."))

    def __repr__(self) -> str:
        return f"PrivateKey({self.public.bits} bits, fingerprint {self.public.fingerprint.hex()[:16]})"

    @cached_property
    def public(self) -> PublicKey:
        """The key that may be handed out."""
        return PublicKey(self.p * self.q)

    @cached_property
    def _crt(self) -> tuple[Whole, Whole, Whole, Whole, Whole, Whole]:
        """p^2, q^2, h_p, h_q, 1/p mod q, and 1/p^2 mod q^2."""
        p, q = self.p, self.q
        p2, q2 = p * p, q * q
        h_p, h_q = -gmpy2.invert(q, p) % p, -gmpy2.invert(p, q) % q
        return p2, q2, h_p, h_q, gmpy2.invert(p, q), gmpy2.invert(p2, q2)

    def validate(self, minimum_bits: int = LEAST_BITS) -> PrivateKey:
        """The key itself, if both factors are primes of one length, far apart, with a modulus that is long enough."""
        if self.public.bits < minimum_bits:
            self.public.validate(minimum_bits)
        if not (gmpy2.is_prime(self.p, _ROUNDS) and gmpy2.is_prime(self.q, _ROUNDS)):
            raise _unsound(say("A factor of the private key is not a prime."))
        if self.p.bit_length() != self.q.bit_length() or not _far_apart(self.p, self.q):
            raise _unsound(say("The factors of the private key differ in length, or lie close together."))
        return self

    def residues(self, ciphertexts: list[Whole], threads: int = 2) -> list[Whole]:
        """The plaintext 0 <= m < n of each ciphertext value; the two primes are worked on side by side."""
        p, q = self.p, self.q
        p2, q2, h_p, h_q, p_inverse, _ = self._crt

        def half(prime: Whole, square: Whole, h: Whole) -> list[Whole]:
            bases = [mpz(c) % square for c in ciphertexts]
            return [(x - 1) // prime * h % prime for x in gmpy2.powmod_base_list(bases, prime - 1, square)]

        if not ciphertexts:
            return []
        if threads > 1:
            with ThreadPoolExecutor(1) as pool:
                other = pool.submit(half, q, q2, h_q)
                modulo_p = half(p, p2, h_p)
                modulo_q = other.result()
        else:
            modulo_p, modulo_q = half(p, p2, h_p), half(q, q2, h_q)
        return [a + (b - a) * p_inverse % q * p for a, b in zip(modulo_p, modulo_q, strict=True)]

    def random_residues(self, pairs: list[tuple[Whole, Whole]], threads: int = 2) -> list[Whole]:
        """The n-th residue modulo n^2 that is x^p modulo p^2 and y^q modulo q^2, for each pair (x, y).

        x runs over 1 ... p-1 and y over 1 ... q-1; since n is coprime to (p-1)(q-1), uniform pairs give what r^n gives
        for uniform r, at less than a third of the cost. Only the owner of the key can do this.
        """
        p, q = self.p, self.q
        p2, q2, *_, square_inverse = self._crt
        if not pairs:
            return []
        first, second = [mpz(x) for x, _ in pairs], [mpz(y) for _, y in pairs]
        if threads > 1:
            with ThreadPoolExecutor(1) as pool:
                other = pool.submit(gmpy2.powmod_base_list, second, q, q2)
                modulo_p2 = gmpy2.powmod_base_list(first, p, p2)
                modulo_q2 = other.result()
        else:
            modulo_p2, modulo_q2 = (
                gmpy2.powmod_base_list(first, p, p2),
                gmpy2.powmod_base_list(second, q, q2),
            )
        return [a + (b - a) * square_inverse % q2 * p2 for a, b in zip(modulo_p2, modulo_q2, strict=True)]


def _far_apart(p: Whole, q: Whole) -> bool:
    """Whether |p - q| leaves Fermat's way of factoring no hope (FIPS 186-5: above 2^(bits/2 - 100))."""
    return bool(abs(p - q) >> max(0, p.bit_length() - 100))


def _prime(bits: int, random: Source) -> Whole:
    """A random prime of just that many bits, its two top bits set, 3 modulo 4."""
    top = mpz(3) << (bits - 2)
    while True:
        candidate = top | (mpz(uniform(random, 1 << (bits - 2))) | 3)
        if gmpy2.gcd(candidate, _small_primes()) == 1 and gmpy2.is_prime(candidate, _ROUNDS):
            return candidate


def keygen(
    bits: int = DEFAULT_BITS, random: Source | None = None, least_bits: int = LEAST_BITS
) -> PrivateKey:
    """A new key: 3072 bits by default, 2048 at least, down to 1024 only for who says so (a paper's figures, never people's data).

    Cost: about 0.3 s at 2048 bits and 1 s at 3072, varying with luck.

    >>> from random import Random
    >>> keygen(1024, Random(1), least_bits=1024).public.bits
    1024
    """
    least = max(least_bits, SHORTEST_BITS)
    if not least <= bits <= MOST_BITS or bits % 2:
        range_ = {"least": least, "most": MOST_BITS}
        raise _unsound(
            say("A key of {bits} bits is not made here.", bits=bits),
            say("Ask for an even number of bits from {least} to {most}; 3072 is the default.", **range_),
        )
    source = secure() if random is None else random
    while True:
        p, q = _prime(bits // 2, source), _prime(bits // 2, source)
        if _far_apart(p, q) and gmpy2.gcd(p - 1, q - 1) == 2 and gmpy2.gcd(p * q, (p - 1) * (q - 1)) == 1:
            return PrivateKey(p, q)


try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
except ImportError as missing:  # pragma: no cover - the development environment has it
    raise MissingExtra(
        "cryptography is not installed.", "Private keys are kept encrypted.", "Install velado[encrypted]."
    ) from missing

MAGIC = b"VELADOSK"
VERSION = 1
LOG2_N = 17
LEAST_LOG2_N = 15
MOST_LOG2_N = 18
RANDOM_LOG2_N = 10
"""How long a random passphrase of 256 bits is stretched: there is nothing to guess that stretching would make dearer."""
_R, _P = 8, 1
_SALT, _NONCE, _PRINT = 16, 12, 32
_HEAD = len(MAGIC) + 4 + _SALT + _NONCE + _PRINT
_LONGEST = 8192


def is_accepted(log2_n: int) -> bool:
    """Whether scrypt may be asked for that N: one that people's words need, or the least, which is for random passphrases alone.

    >>> is_accepted(17), is_accepted(RANDOM_LOG2_N), is_accepted(14), is_accepted(30)
    (True, True, False, False)
    """
    return LEAST_LOG2_N <= log2_n <= MOST_LOG2_N or log2_n == RANDOM_LOG2_N


def seal(private: PrivateKey, passphrase: str, random: Source | None = None, log2_n: int = LOG2_N) -> bytes:
    """The key, encrypted under the passphrase.

    >>> seal(PrivateKey(1009, 1019), "four words are enough", log2_n=15)[:8]
    b'VELADOSK'
    """
    if not passphrase:
        raise _refused(
            say("The passphrase is empty."),
            say("Give one of several words; without it the key cannot be read."),
        )
    if not is_accepted(log2_n):
        raise _refused(
            say("The cost of guessing the passphrase is out of range."),
            say(
                "Use {least} to {most}; {usual} is the default.",
                least=LEAST_LOG2_N,
                most=MOST_LOG2_N,
                usual=LOG2_N,
            ),
        )
    source = secure() if random is None else random
    salt = uniform(source, 1 << (8 * _SALT)).to_bytes(_SALT, "big")
    nonce = uniform(source, 1 << (8 * _NONCE)).to_bytes(_NONCE, "big")
    head = MAGIC + bytes([VERSION, log2_n, _R, _P]) + salt + nonce + private.public.fingerprint
    size = (private.public.bits + 7) // 8
    secret = size.to_bytes(4, "big") + b"".join(int(f).to_bytes(size, "big") for f in (private.p, private.q))
    return head + cipher_of(passphrase, salt, log2_n).encrypt(nonce, secret, head)


def open_sealed(data: bytes, passphrase: str, minimum_bits: int = SHORTEST_BITS) -> PrivateKey:
    """The key in *data*, if the passphrase opens it, no byte was changed, and it is a sound key of at least that size.

    >>> from random import Random
    >>> private = keygen(1024, Random(1), least_bits=1024)
    >>> open_sealed(seal(private, "four words", log2_n=15), "four words") == private
    True
    """
    if not _HEAD < len(data) <= _LONGEST or data[: len(MAGIC)] != MAGIC:
        raise _refused(say("This is not a key file of velado."), say("Give the file that keygen wrote."))
    version, log2_n, r, p = data[len(MAGIC) : len(MAGIC) + 4]
    if version != VERSION:
        raise _refused(
            say("The key file is of an unknown version."),
            say("Use the velado that wrote it, or a newer one."),
        )
    if not is_accepted(log2_n) or (r, p) != (_R, _P):
        raise _refused(
            say("The key file asks for parameters that are not accepted."),
            say("Give the file that keygen wrote."),
        )
    head, sealed = data[:_HEAD], data[_HEAD:]
    salt = head[len(MAGIC) + 4 :][:_SALT]
    nonce = head[len(MAGIC) + 4 + _SALT :][:_NONCE]
    fingerprint = head[-_PRINT:]
    try:
        secret = cipher_of(passphrase, salt, log2_n).decrypt(nonce, sealed, head)
    except InvalidTag:
        raise _refused(
            say("The passphrase does not open the key file, or the file was changed."),
            say("Type the passphrase again, or restore the file from its copy."),
        ) from None
    size = int.from_bytes(secret[:4], "big")
    if len(secret) != 4 + 2 * size:
        raise _refused(say("The key file does not hold a key."), say("Make a new key."))
    private = PrivateKey(
        int.from_bytes(secret[4 : 4 + size], "big"), int.from_bytes(secret[4 + size :], "big")
    )
    if private.public.fingerprint != fingerprint:
        raise _refused(say("The key file holds another key than it says."), say("Make a new key."))
    return private.validate(minimum_bits)


def cipher_of(passphrase: str, salt: bytes, log2_n: int) -> AESGCM:
    """What seals under a passphrase: AES-256-GCM with the key that scrypt makes of it.

    >>> one, other = (cipher_of(text, bytes(16), 15) for text in ("caf\u00e9", "cafe\u0301"))
    >>> other.decrypt(bytes(12), one.encrypt(bytes(12), b"secret", None), None)
    b'secret'
    """
    # One text has several encodings of its accents; the same keys pressed elsewhere must open the file.
    text = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    return AESGCM(Scrypt(salt=salt, length=32, n=1 << log2_n, r=_R, p=_P).derive(text))


def _refused(what: str, fix: str) -> KeyRefused:
    return KeyRefused(what, "Without the private key nothing can be decrypted.", fix)
