"""Whether files can be written below a folder that may not exist yet."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["blocked_by"]


def blocked_by(folder: Path) -> Path | None:
    """Return what keeps files from being written below `folder`: the first that exists on the way to it."""
    whole = Path.cwd() / folder
    existing = next(each for each in (whole, *whole.parents) if each.exists())
    return None if existing.is_dir() and os.access(existing, os.W_OK) else existing
