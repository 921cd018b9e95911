"""The HTTP methods of tools. Pure: no I/O."""

from __future__ import annotations

from typing import Final

__all__ = ["BODY_METHODS", "METHODS"]

# The methods that a tool may use. CONNECT and TRACE are for proxies and debugging, not for tools.
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# Methods that carry their arguments in a JSON body; the rest carry them in the query.
BODY_METHODS: Final = frozenset({"POST", "PUT", "PATCH"})
