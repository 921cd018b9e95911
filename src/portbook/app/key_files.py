"""Keys in files of the operator: the audit key, and the key that signs envelopes."""

from __future__ import annotations

from pathlib import Path

from portbook.audit.keyed_digests import AuditKey, BadAuditKey
from portbook.provenance.signing import BadKey, SigningKey

__all__ = ["load_audit_key", "load_signing_key"]


def load_audit_key(path: Path) -> AuditKey:
    """Return the key in a file.

    Raises `OSError` where it cannot be read, `BadAuditKey` where it holds none.
    """
    try:
        return AuditKey.from_text(path.read_text("ascii"))
    except (UnicodeDecodeError, BadAuditKey):
        raise BadAuditKey(f"{path}: not an audit key; `portbook audit key` makes one") from None


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
