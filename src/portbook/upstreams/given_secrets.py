"""`GivenSecrets`: every secret value that servers were given, to redact it wherever they repeat it.

A value in use is never forgotten. Of earlier ones, such as tokens that were renewed, the latest are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from portbook.scan.embedded_secrets import GIVEN_SECRET

if TYPE_CHECKING:
    from portbook.redaction.known_values import KnownValues

__all__ = ["GivenSecrets"]

# Values that no connection uses any more, of all servers.
_MAX_EARLIER: Final = 1024


class GivenSecrets:
    """The secret values of all servers."""

    def __init__(self, notice: Callable[[str], None] = lambda _: None) -> None:
        """Tell `notice` of each value that is new."""
        self._notice = notice
        # By the connection that uses them, so that they are in use for as long as it is.
        self._in_use: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
        self._known: dict[str, None] = {}
        self._redact: Callable[[str], str] | None = None
        self._found: KnownValues | None = None

    def learn(self, user: object, value: str) -> None:
        """Remember a value while its `user` lives, and for some time after that."""
        self._in_use.setdefault(user, set()).add(value)
        is_new = value not in self._known
        self._known.pop(value, None)
        self._known[value] = None  # the latest is the last
        if is_new:
            self._forget_some()
            self._redact = self._found = None
            self._notice(value)

    def values(self) -> list[str]:
        """Return all of them."""
        return list(self._known)

    def redact(self, text: str) -> str:
        """Return a text of a server without them, and without what looks like a secret."""
        if self._redact is None:
            from portbook.redaction.redactor import Redactor

            self._redact = Redactor(secrets=self._known).redact_text
        return self._redact(text)

    def hide(self, text: str) -> str:
        """Return a text with a mark in place of each of them, and all else as it is. From any thread."""
        if not self._known:
            return text
        from portbook.redaction.known_values import KnownValues, has_views, views

        found = self._found
        if found is None:
            found = self._found = KnownValues(tuple(self._known))
        spans = sorted(found.spans(text))
        if not spans:
            is_escaped = has_views(text) and any(map(found.are_in, views(text)))
            return GIVEN_SECRET if is_escaped else text
        pieces, end = list[str](), 0
        for start, after in spans:
            if start >= end:
                pieces += [text[end:start], GIVEN_SECRET]
            end = max(end, after)
        return "".join((*pieces, text[end:]))

    def _forget_some(self) -> None:
        if len(self._known) <= _MAX_EARLIER:
            return
        used = set[str]().union(*self._in_use.values())
        earlier = [value for value in self._known if value not in used]
        for value in earlier[: max(len(earlier) - _MAX_EARLIER, 0)]:
            del self._known[value]
