"""`Content`: what all content blocks of MCP are. Light: most tools return values, and this tells so."""

from __future__ import annotations

import base64

from portbook.model import JSONObject

__all__ = ["Content", "base64_text"]


class Content:
    """A content block of MCP: `Text`, `Image`, `Audio`, `Embedded` or `ResourceLink`.

    A tool declares it in its return type: `-> Image` or `-> list[Content]`; a list may also hold plain text.
    """

    __slots__ = ()

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        raise NotImplementedError


def base64_text(data: bytes) -> str:
    """Return bytes as MCP has them in content."""
    return base64.b64encode(data).decode()
