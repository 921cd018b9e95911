"""Locates the files that Portbook ships: inside the wheel, or in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

__all__ = ["shipped_folder"]

_PACKAGE = Path(__file__).resolve().parent.parent
_IN_CHECKOUT = {"schemas": "codex/specs/schemas", "docs": "docs"}


def shipped_folder(what: Literal["schemas", "docs"]) -> Path:
    """Return the folder of the contract schemas or of the documentation."""
    in_wheel = _PACKAGE / "_shipped" / what
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent.parent / _IN_CHECKOUT[what]
