"""A zip archive whose bytes depend on its files alone: no times, no owners, one order. Pure: no I/O.

Nothing is compressed, because the bytes of a compressed file differ from one version of zlib to the next.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Final

__all__ = ["archive"]

# The oldest time that a zip archive can hold.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644
_UNIX: Final = 3


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return the archive that holds `files` by their names."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as packed:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = _MODE << 16
            entry.create_system = _UNIX
            packed.writestr(entry, files[name])
    return made.getvalue()
