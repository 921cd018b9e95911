"""Files of the store that users other than their owner can read or write: made private, or refused.

The store holds digests of keys, approvals and the key that signs states. Who can write it can approve calls.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from portbook.stores.errors import StoreError

__all__ = ["make_private", "refuse_exposed"]

# What the group and all other users may do.
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def refuse_exposed(path: Path) -> None:
    """Check that `path`, where it exists, is private or can be made so by this process.

    Raises `StoreError` where further users can read or write it, and it belongs to a different user.
    """
    status = _status(path)
    if status is not None and status.st_mode & _OTHERS and status.st_uid != os.geteuid():
        raise StoreError(
            f"{path}: users other than its owner can read or write it, and it belongs to a different user; "
            f"have its owner run `chmod go= {path.name}`, or choose a different [store] path"
        )


def make_private(path: Path) -> None:
    """Take the permissions on `path` from all users but its owner, where they have any.

    Raises `StoreError` where it belongs to a different user, `OSError` where it cannot be changed.
    """
    refuse_exposed(path)
    status = _status(path)
    if status is not None and status.st_mode & _OTHERS:
        path.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None
