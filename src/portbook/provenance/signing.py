"""Ed25519 keys that sign envelopes and verify signatures, and the bytes that a signature covers.

A private key is stored as PKCS #8 and a public one as SubjectPublicKeyInfo, both in PEM, as in RFC 8410 and
OpenSSL. The id of a key is its public key, so that a signature can be verified without a further file; only
the reader can know whose key it is. The library is loaded with the first key. Pure: no I/O.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from typing import Final, Protocol

from portbook.canonical import jcs_bytes
from portbook.model import JSONObject

__all__ = ["ALGORITHM", "BadKey", "PublicKey", "Signer", "SigningKey", "signed_bytes"]

ALGORITHM: Final = "ed25519"

# RFC 8410: the two structures without the 32 bytes at their end.
_PRIVATE: Final = bytes.fromhex("302e020100300506032b657004220420")
_PUBLIC: Final = bytes.fromhex("302a300506032b6570032100")

_SEED_BYTES: Final = 32

_PEM: Final = re.compile(r"\s*-----BEGIN ([A-Z ]+)-----\s([A-Za-z0-9+/=\s]+)-----END \1-----\s*", re.ASCII)
_KEY_ID: Final = re.compile(rf"{ALGORITHM}:([0-9a-f]{{64}})", re.ASCII)
# Lower-case hexadecimal: base64 has several spellings of one signature, and an altered one must not pass.
_SIGNATURE: Final = re.compile(r"[0-9a-f]{128}", re.ASCII)


class BadKey(ValueError):
    """A key that cannot be used; the message gives the reason, and never quotes the key."""


class Signer(Protocol):
    """Signs bytes."""

    @property
    def key_id(self) -> str:
        """Return the id of the key."""
        ...

    def sign(self, message: bytes) -> str:
        """Return the signature of `message`, in hexadecimal."""
        ...


class SigningKey:
    """A private key. Its `repr` shows only the `key_id`."""

    __slots__ = ("_secret", "key_id", "public")

    def __init__(self, seed: bytes) -> None:
        """Derive the key from a seed of 32 bytes."""
        from nacl.bindings import crypto_sign_seed_keypair

        raw, self._secret = crypto_sign_seed_keypair(seed)
        self.public = PublicKey(raw)
        """The public key."""
        self.key_id = self.public.key_id

    @classmethod
    def generate(cls) -> SigningKey:
        """Return a new key."""
        from nacl.utils import random

        return cls(random(_SEED_BYTES))

    @classmethod
    def from_pem(cls, text: str) -> SigningKey:
        """Return the key in a PEM file.

        Raises `BadKey` where it has no key of this kind.
        """
        return cls(_unwrapped(text, "PRIVATE KEY", _PRIVATE))

    def to_pem(self) -> str:
        """Return the key as PEM, for a file that only its owner may read."""
        return _pem("PRIVATE KEY", _PRIVATE + self._secret[:_SEED_BYTES])

    def sign(self, message: bytes) -> str:
        """Return the signature of `message`, in hexadecimal."""
        from nacl.bindings import crypto_sign, crypto_sign_BYTES

        return crypto_sign(message, self._secret)[:crypto_sign_BYTES].hex()

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key."""

    raw: bytes

    @classmethod
    def from_pem(cls, text: str) -> PublicKey:
        """Return the key in a PEM file.

        Raises `BadKey` where it has no key of this kind.
        """
        return cls(_unwrapped(text, "PUBLIC KEY", _PUBLIC))

    @classmethod
    def from_id(cls, key_id: str) -> PublicKey:
        """Return the key that has this id.

        Raises `BadKey` where it is not a key id.
        """
        match = _KEY_ID.fullmatch(key_id)
        if match is None:
            raise BadKey(f"a key's id is {ALGORITHM}: and 64 lower-case hexadecimal digits")
        return cls(bytes.fromhex(match[1]))

    def to_pem(self) -> str:
        """Return the key as PEM."""
        return _pem("PUBLIC KEY", _PUBLIC + self.raw)

    @property
    def key_id(self) -> str:
        """Return the id of the key."""
        return f"{ALGORITHM}:{self.raw.hex()}"

    def verifies(self, message: bytes, signature: str) -> bool:
        """Return whether `signature` is this key's signature of `message`."""
        if _SIGNATURE.fullmatch(signature) is None:
            return False
        from nacl.bindings import crypto_sign_open
        from nacl.exceptions import BadSignatureError

        try:
            crypto_sign_open(bytes.fromhex(signature) + message, self.raw)
        except BadSignatureError:
            return False
        return True


def _pem(label: str, der: bytes) -> str:
    return f"-----BEGIN {label}-----\n{base64.b64encode(der).decode()}\n-----END {label}-----\n"


def _unwrapped(text: str, label: str, prefix: bytes) -> bytes:
    match = _PEM.fullmatch(text)
    if match is None:
        raise BadKey(f"expected one PEM block, BEGIN {label}, and nothing else")
    if match[1] != label:
        raise BadKey(f"expected BEGIN {label}, not BEGIN {match[1][:40]}")
    try:
        der = base64.b64decode("".join(match[2].split()), validate=True)
    except binascii.Error:
        raise BadKey("the PEM block is not base64") from None
    if len(der) != len(prefix) + _SEED_BYTES or not der.startswith(prefix):
        raise BadKey("not an Ed25519 key; `portbook keys signing` and `openssl genpkey` make one")
    return der[len(prefix) :]


def signed_bytes(envelope: JSONObject) -> bytes:
    """Return the bytes that a signature covers: `envelope` without the signature, in RFC 8785's form.

    Raises `NotJSON` where RFC 8785 cannot represent it.
    """
    record = envelope.get("provenance")
    integrity = record.get("integrity") if isinstance(record, dict) else None
    if not isinstance(record, dict) or not isinstance(integrity, dict):
        return jcs_bytes(envelope)
    rest: JSONObject = {name: value for name, value in integrity.items() if name != "signature"}
    return jcs_bytes({**envelope, "provenance": {**record, "integrity": rest}})
