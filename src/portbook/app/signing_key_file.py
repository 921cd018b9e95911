"""Reads the key that signs envelopes from its file."""

from __future__ import annotations

from pathlib import Path

from portbook.provenance.signing import BadKey, SigningKey

__all__ = ["load_signing_key"]


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
