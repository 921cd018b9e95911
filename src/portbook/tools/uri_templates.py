"""URI templates of resources: the subset of RFC 6570 that can be matched. Pure: no I/O.

`{name}` matches one segment, `{+name}` the rest of the path, slashes included. A template has at most one of
the latter, so that a URI matches in one way only, in linear time.

Values are percent-decoded, and authors may open files with them. They are therefore checked after decoding:
a segment holds no slash, `.` and `..` are refused, a path is relative, and control characters are refused.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote, unquote

from portbook.model import JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.tools.spec import BadTool

__all__ = ["MAX_URI", "UriTemplate"]

_EXPRESSION: Final = late_pattern(r"\{(\+?)([A-Za-z_][A-Za-z0-9_]*)\}", re.ASCII)
_SCHEME: Final = late_pattern(r"[A-Za-z][A-Za-z0-9+.-]*:", re.ASCII)
_UNFIT: Final = late_pattern(r"[\x00-\x1f\x7f-\x9f]")
_SLASHES: Final = late_pattern(r"[/\\]")

# The longest URI of a resource.
MAX_URI: Final = 2048


class UriTemplate:
    """A URI with variables."""

    __slots__ = ("_pattern", "_wide", "names", "text")

    def __init__(self, text: str) -> None:
        """Parse a template.

        Raises `BadTool` where it is outside of the supported subset.
        """
        self.text = text
        self.names = tuple(name for _, name in _EXPRESSION.findall(text))
        wide = [name for sign, name in _EXPRESSION.findall(text) if sign]
        literal = _EXPRESSION.sub("", text)
        if not _SCHEME.match(text) or not text.isprintable() or " " in text or len(text) > MAX_URI:
            raise BadTool(f"resource {text[:80]!r}: use an address with a scheme, such as notes://today")
        if "{" in literal or "}" in literal:
            raise BadTool(f"resource {text[:80]!r}: use {{name}} or {{+name}}, and no other braces")
        if len(set(self.names)) < len(self.names) or len(wide) > 1:
            raise BadTool(f"resource {text[:80]!r}: use each name once, and {{+name}} at most once")
        self._wide = frozenset(wide)
        parts = re.split(r"(\{\+?[A-Za-z_][A-Za-z0-9_]*\})", text)
        if any(not part for part in parts[2:-1:2]):
            raise BadTool(f"resource {text[:80]!r}: put a literal between two names")
        following = [*parts[1:], ""]
        pieces = (_pattern_of(part, after) for part, after in zip(parts, following, strict=True))
        self._pattern = re.compile("".join(pieces), re.ASCII)

    @staticmethod
    def is_one(text: str) -> bool:
        """Return whether `text` has variables."""
        return "{" in text

    def expand(self, values: JSONObject) -> str:
        """Return the URI with these values of its variables, each of them a string."""

        def filled(found: re.Match[str]) -> str:
            sign, name = found.groups()
            return quote(str(values.get(name, "")), safe="/:@!$&'()*+,;=~" if sign else "")

        return _EXPRESSION.sub(filled, self.text)

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded value of each variable in `uri`; None where it does not match."""
        found = self._pattern.fullmatch(uri) if len(uri) <= MAX_URI else None
        if found is None:
            return None
        try:
            values = {name: unquote(value, errors="strict") for name, value in found.groupdict().items()}
        except UnicodeDecodeError:
            return None
        is_fit = all(_is_fit(value, is_wide=name in self._wide) for name, value in values.items())
        return values if is_fit else None


def _is_fit(value: str, *, is_wide: bool) -> bool:
    """Return whether a decoded value is allowed for its variable."""
    segments = _SLASHES.split(value)
    if _UNFIT.search(value) or not segments[0]:  # an empty first segment makes an absolute path
        return False
    return (is_wide or len(segments) == 1) and not {".", ".."} & set(segments)


def _pattern_of(part: str, following: str) -> str:
    expression = _EXPRESSION.fullmatch(part)
    if expression is None:
        return re.escape(part)
    sign, name = expression.groups()
    # A segment excludes the character that follows it, so matching never backtracks.
    return f"(?P<{name}>{'[^?#]+' if sign else f'[^/?#{re.escape(following[:1])}]+'})"
