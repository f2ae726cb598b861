"""A private key as bytes that only its passphrase opens: scrypt makes a key of the passphrase, AES-256-GCM seals.

Layout: magic (8), version (1), log2 of scrypt's N (1), r (1), p (1), salt (16), nonce (12), fingerprint of the public key
(32), sealed factors. Everything before the sealed part is authenticated with it. scrypt (RFC 7914) with N = 2^17, r = 8,
p = 1 takes some 0.4 s and 128 MB for each guess; N from 2^15 to 2^18 is accepted, so that a forged file cannot ask for
all memory. A wrong passphrase and a changed byte look the same: KeyRefused. Writing the file, readable by its owner
alone, is done in `velado.encrypted.net`.
"""

from __future__ import annotations

import unicodedata

from velado.encrypted.crypto.keys import PAPER_BITS, PrivateKey
from velado.encrypted.crypto.modular import Source, uniform
from velado.errors import KeyRefused, MissingExtra
from velado.randomness import secure

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt
except ImportError as missing:  # pragma: no cover - the development environment has it
    raise MissingExtra(
        "cryptography is not installed.",
        "Private keys are kept encrypted.",
        "Install velado[encrypted].",
    ) from missing

MAGIC = b"VELADOSK"
VERSION = 1
LOG2_N = 17
LEAST_LOG2_N = 15
MOST_LOG2_N = 18
_R, _P = 8, 1
_SALT, _NONCE, _PRINT = 16, 12, 32
_HEAD = len(MAGIC) + 4 + _SALT + _NONCE + _PRINT
_LONGEST = 8192


def seal(private: PrivateKey, passphrase: str, random: Source | None = None, log2_n: int = LOG2_N) -> bytes:
    """The key, encrypted under the passphrase."""
    if not passphrase:
        raise _refused(
            "The passphrase is empty.", "Give one of several words; without it the key cannot be read."
        )
    if not LEAST_LOG2_N <= log2_n <= MOST_LOG2_N:
        raise _refused(
            "The cost of guessing the passphrase is out of range.",
            f"Use {LEAST_LOG2_N} to {MOST_LOG2_N}; {LOG2_N} is the default.",
        )
    source = secure() if random is None else random
    salt = uniform(source, 1 << (8 * _SALT)).to_bytes(_SALT, "big")
    nonce = uniform(source, 1 << (8 * _NONCE)).to_bytes(_NONCE, "big")
    head = MAGIC + bytes([VERSION, log2_n, _R, _P]) + salt + nonce + private.public.fingerprint
    size = (private.public.bits + 7) // 8
    secret = size.to_bytes(4, "big") + b"".join(int(f).to_bytes(size, "big") for f in (private.p, private.q))
    return head + AESGCM(_derive(passphrase, salt, log2_n)).encrypt(nonce, secret, head)


def open_sealed(data: bytes, passphrase: str, minimum_bits: int = PAPER_BITS) -> PrivateKey:
    """The key in *data*, if the passphrase opens it, no byte was changed, and it is a sound key of at least that size."""
    if not _HEAD < len(data) <= _LONGEST or data[: len(MAGIC)] != MAGIC:
        raise _refused("This is not a key file of velado.", "Give the file that keygen wrote.")
    version, log2_n, r, p = data[len(MAGIC) : len(MAGIC) + 4]
    if version != VERSION:
        raise _refused(
            "The key file is of an unknown version.", "Use the velado that wrote it, or a newer one."
        )
    if not LEAST_LOG2_N <= log2_n <= MOST_LOG2_N or (r, p) != (_R, _P):
        raise _refused(
            "The key file asks for parameters that are not accepted.", "Give the file that keygen wrote."
        )
    head, sealed = data[:_HEAD], data[_HEAD:]
    salt = head[len(MAGIC) + 4 :][:_SALT]
    nonce = head[len(MAGIC) + 4 + _SALT :][:_NONCE]
    fingerprint = head[-_PRINT:]
    try:
        secret = AESGCM(_derive(passphrase, salt, log2_n)).decrypt(nonce, sealed, head)
    except InvalidTag:
        raise _refused(
            "The passphrase does not open the key file, or the file was changed.",
            "Type the passphrase again, or restore the file from its copy.",
        ) from None
    size = int.from_bytes(secret[:4], "big")
    if len(secret) != 4 + 2 * size:
        raise _refused("The key file does not hold a key.", "Make a new key.")
    private = PrivateKey(
        int.from_bytes(secret[4 : 4 + size], "big"), int.from_bytes(secret[4 + size :], "big")
    )
    if private.public.fingerprint != fingerprint:
        raise _refused("The key file holds another key than it says.", "Make a new key.")
    return private.validate(minimum_bits)


def _derive(passphrase: str, salt: bytes, log2_n: int) -> bytes:
    # One text has several encodings of its accents; the same keys pressed elsewhere must open the file.
    text = unicodedata.normalize("NFC", passphrase).encode("utf-8", "surrogatepass")
    return Scrypt(salt=salt, length=32, n=1 << log2_n, r=_R, p=_P).derive(text)


def _refused(what: str, fix: str) -> KeyRefused:
    return KeyRefused(what, "Without the private key nothing can be decrypted.", fix)
