"""Keys in files of the operator: the audit key, and the key that signs envelopes."""

from __future__ import annotations

import os
from pathlib import Path

from portbook.audit.keyed_digests import KEY_BYTES, AuditKey, BadAuditKey
from portbook.provenance.signing import BadKey, SigningKey

__all__ = ["load_audit_key", "load_signing_key", "make_audit_key", "make_signing_key"]


def load_audit_key(path: Path) -> AuditKey:
    """Return the key in a file.

    Raises `OSError` where it cannot be read, `BadAuditKey` where it holds none.
    """
    try:
        return AuditKey.from_text(path.read_text("ascii"))
    except (UnicodeDecodeError, BadAuditKey):
        raise BadAuditKey(f"{path}: not an audit key; `portbook audit key` makes one") from None


def make_audit_key(path: Path) -> AuditKey:
    """Write a new key to a file that only its owner can read, and return it.

    Raises `OSError` where there is such a file, or it cannot be written.
    """
    key = AuditKey(os.urandom(KEY_BYTES))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key.to_text())
    return key


def load_signing_key(path: Path) -> SigningKey:
    """Return the key in a file.

    Raises `OSError` where it cannot be read, `BadKey` where it holds none.
    """
    try:
        return SigningKey.from_pem(path.read_text("ascii"))
    except UnicodeDecodeError:
        raise BadKey(f"{path}: not a PEM file") from None
    except BadKey as error:
        raise BadKey(f"{path}: {error}") from None


def make_signing_key(path: Path) -> SigningKey:
    """Write a new key to a file that only its owner can read, and its public half beside it, as `PATH.pub`.

    Raises `OSError` where a file cannot be written, or the key's is there already.
    """
    key = SigningKey.generate()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key.to_pem())
    Path(f"{path}.pub").write_text(key.public.to_pem(), "ascii")
    return key
