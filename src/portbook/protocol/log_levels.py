"""The log levels of MCP, and the one that holds until a client sets one. Pure: no I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["DEFAULT_LEVEL", "LEVELS"]

# The log levels of MCP, from the least severe.
LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

# The level of a connection that has not set one.
DEFAULT_LEVEL: Final = "info"
