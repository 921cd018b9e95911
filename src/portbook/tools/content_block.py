"""`Content`: what all content blocks of MCP are. Light: most tools return values, and this tells so."""

from __future__ import annotations

from portbook.model import JSONObject

__all__ = ["Content"]


class Content:
    """A content block of MCP: `Text`, `Image`, `Audio`, `Embedded` or `ResourceLink`.

    A tool declares it in its return type: `-> Image` or `-> list[Content]`; a list may also hold plain text.
    """

    __slots__ = ()

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        raise NotImplementedError
