"""The most that a table of the settings may ask for a tool of an HTTP API. Pure: no I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["MAX_RESPONSE_BYTES", "MAX_RETRIES", "MAX_TIMEOUT_MS"]

MAX_TIMEOUT_MS: Final = 86_400_000
MAX_RETRIES: Final = 10
MAX_RESPONSE_BYTES: Final = 67_108_864
