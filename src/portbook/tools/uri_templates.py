"""Templates of resources' addresses: the part of RFC 6570 that can be read backwards. Pure: no I/O.

`{name}` stands for one segment, `{+name}` for the rest of the path, slashes included. A template has at most
one of the latter, so that there is one way to read an address, and reading it takes linear time.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from portbook.tools.spec import BadTool

__all__ = ["UriTemplate"]

_EXPRESSION: Final = re.compile(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_MAX_URI: Final = 2048


class UriTemplate:
    """An address with places to fill."""

    __slots__ = ("_pattern", "names", "text")

    def __init__(self, text: str) -> None:
        """Read a template.

        Raises `BadTool` for one that cannot be read backwards.
        """
        self.text = text
        self.names = tuple(name for _, name in _EXPRESSION.findall(text))
        wide = [name for sign, name in _EXPRESSION.findall(text) if sign]
        literal = _EXPRESSION.sub("", text)
        if not _SCHEME.match(text) or not text.isprintable() or " " in text or len(text) > _MAX_URI:
            raise BadTool(f"resource {text[:80]!r}: use an address with a scheme, such as notes://today")
        if "{" in literal or "}" in literal:
            raise BadTool(f"resource {text[:80]!r}: use {{name}} or {{+name}}, and no other braces")
        if len(set(self.names)) < len(self.names) or len(wide) > 1:
            raise BadTool(f"resource {text[:80]!r}: use each name once, and {{+name}} at most once")
        parts = re.split(r"(\{\+?[A-Za-z_][A-Za-z0-9_]*\})", text)
        if any(not part for part in parts[2:-1:2]):
            raise BadTool(f"resource {text[:80]!r}: put something between two names")
        following = [*parts[1:], ""]
        pieces = (_pattern_of(part, after) for part, after in zip(parts, following, strict=True))
        self._pattern = re.compile("".join(pieces), re.ASCII)

    @staticmethod
    def is_one(text: str) -> bool:
        """Return whether `text` has places to fill."""
        return "{" in text

    def match(self, uri: str) -> dict[str, str] | None:
        """Return what `uri` has at each place, decoded; None where it does not fit."""
        found = self._pattern.fullmatch(uri) if len(uri) <= _MAX_URI else None
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}


def _pattern_of(part: str, following: str) -> str:
    expression = _EXPRESSION.fullmatch(part)
    if expression is None:
        return re.escape(part)
    sign, name = expression.groups()
    # A segment ends where what follows it begins: there is nothing to try twice.
    return f"(?P<{name}>{'[^?#]+' if sign else f'[^/?#{re.escape(following[:1])}]+'})"
