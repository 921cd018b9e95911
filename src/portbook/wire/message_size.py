"""The largest message that is read, at every door. Pure: no I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_FRAME_BYTES"]

# The asset specification's size guard: exactly this many bytes pass, one more is refused.
MAX_FRAME_BYTES: Final = 1_048_576
