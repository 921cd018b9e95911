"""The operator key, which decides approvals over HTTP: its variable and its least length."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["OPERATOR_KEY", "operator_key_doubts"]

OPERATOR_KEY: Final = "PORTBOOK_OPERATOR_KEY"
_LEAST_LENGTH: Final = 16


def operator_key_doubts(environ: Mapping[str, str]) -> list[str]:
    """Return a warning where the operator key is short enough to be guessed."""
    if 0 < len(environ.get(OPERATOR_KEY, "")) < _LEAST_LENGTH:
        return [f"{OPERATOR_KEY} can be guessed; use {_LEAST_LENGTH} characters or more"]
    return []
