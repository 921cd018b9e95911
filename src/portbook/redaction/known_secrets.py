"""Finds known secrets, wherever they occur and however they are encoded. Pure: no I/O.

A secret is searched for in plain text, in base64 at any offset, in hexadecimal, and escaped for JSON, HTML or
URLs. `views` undoes any mix of escapes, so that the unescaped text can be searched too.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final
from urllib.parse import quote, quote_plus

from portbook.canonical import json_bytes
from portbook.redaction.detectors import Span
from portbook.redaction.prefilter import Prefilter
from portbook.redaction.replacements_and_pointers import MARK
from portbook.text.late_pattern import late_pattern

__all__ = ["ESCAPE_PATTERNS", "ESCAPE_TRIGGERS", "LEAST_LENGTH", "KnownValues", "has_views", "views"]

# Shorter secrets occur in too many texts by chance.
LEAST_LENGTH: Final = 6

# The start of a long secret counts as the secret, because messages truncate long values.
_ENOUGH: Final = 40

_BASE64: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")
_NUMBER: Final = late_pattern(r"[-+.eE0-9]+")


class KnownValues:
    """A set of secrets to find in text."""

    __slots__ = ("_encoded", "_forms", "_numbers", "_prefilter", "starts")

    def __init__(self, secrets: Iterable[str]) -> None:
        kept = {secret for secret in secrets if _can_be_hidden(secret)}
        forms = {form for secret in kept for form in _spellings(secret)}
        self._forms = tuple(sorted(form for form in forms if len(form) >= LEAST_LENGTH))
        self._encoded = tuple(sorted({form for secret in kept for form in _cores(secret.encode())}))
        self._numbers = tuple(sorted(secret for secret in kept if _NUMBER.fullmatch(secret)))
        self.starts = sorted({form[:_ENOUGH] for form in (*self._forms, *self._encoded)})
        """What is in every text that has a secret, also where its end is cut off: triggers for prefilters."""
        self._prefilter = Prefilter.of(self.starts)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of secrets in `text`."""
        if not self._prefilter.passes(text.encode("utf-8", "surrogatepass")):
            return
        for form in self._forms:
            yield from _places(text, form)
        for form in self._encoded:
            for start, end in _places(text, form):
                # The adjacent characters hold bits of the first and the last byte.
                yield start - (text[start - 1 : start] in _BASE64), end + (text[end : end + 1] in _BASE64)

    def are_in(self, text: str) -> bool:
        """Return whether `text` contains a secret."""
        return any(form[:_ENOUGH] in text for form in (*self._forms, *self._encoded))

    def are_in_number(self, number: float) -> bool:
        """Return whether `number`, written as JSON, contains a secret."""
        if not self._numbers:
            return False
        written = json_bytes(number).decode()
        return any(secret in written for secret in self._numbers)


def _can_be_hidden(secret: str) -> bool:
    """Return whether to search for `secret`: not if JSON cannot hold it, nor if the mark contains it."""
    is_text = not any("\ud800" <= character <= "\udfff" for character in secret)
    return len(secret) >= LEAST_LENGTH and secret not in MARK and is_text


def _places(text: str, form: str) -> Iterator[Span]:
    """Yield the spans of `form`, also where its end is truncated."""
    at = text.find(form[:_ENOUGH])
    while at >= 0:
        end = at + min(len(form), _ENOUGH)
        for character in form[_ENOUGH:]:
            if text[end : end + 1] != character:
                break
            end += 1
        yield at, end
        at = text.find(form[:_ENOUGH], end)


def _spellings(secret: str) -> Iterator[str]:
    import html  # late: it takes 1 ms, and is needed only where there are secrets

    yield secret
    yield secret.replace("\\", "")  # its form where all backslashes are gone
    yield _without_backslashes(secret)  # in a view, a backslash and an n of its own are read as one, too
    yield html.escape(secret)
    yield html.escape(secret).encode("ascii", "xmlcharrefreplace").decode()
    for escaped in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        yield escaped
        yield re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), escaped)
    for is_ascii in (True, False):
        yield json.dumps(secret, ensure_ascii=is_ascii)[1:-1]
    yield secret.encode().hex()
    yield secret.encode().hex().upper()


def _cores(secret: bytes) -> Iterator[str]:
    """Yield the base64 of a secret at each offset, without characters that depend on adjacent bytes."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + secret).decode()
        first = -(-offset * 8 // 6)  # the first character that holds bits of the secret only
        core = encoded[first : (offset + len(secret)) * 8 // 6]
        yield core
        yield core.replace("+", "-").replace("/", "_")


_SHORT: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
# Any number of backslashes, because each level of nesting doubles them.
_ESCAPE: Final = late_pattern(
    r"(?<!\\)\\++(?:u(?P<u>[0-9a-fA-F]{4})|x(?P<x>[0-9a-fA-F]{2})|(?P<short>[nrtbf]))?"
)
_PERCENT: Final = late_pattern(r"(?:%[0-9a-fA-F]{2})++")
_REFERENCE: Final = late_pattern(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")
_JOIN: Final = late_pattern(r"([\"']) *+\+ *+\1")
_ROUNDS: Final = 4

# In JSON bytes, a backslash in a string is doubled. Quotes may be escaped, and folding drops spaces.
ESCAPE_TRIGGERS: Final = ("\\\\", '"+"', '"+\\"', "'+'")
# Folding turns digits into zeros.
ESCAPE_PATTERNS: Final = ("%[0a-f]{2}", "&#?[0a-z]{1,32};")


def has_views(text: str) -> bool:
    """Return whether `text` has escapes to undo; a percent sign or a plus alone is none."""
    if "\\" in text or ("%" in text and _PERCENT.search(text)):
        return True
    if "&" in text and _REFERENCE.search(text):
        return True
    return "+" in text and _JOIN.search(text) is not None


def views(text: str) -> Iterator[str]:
    """Yield `text` with its escapes undone, then with nested escapes undone, to a bounded depth.

    String literals that are concatenated with `+` are also joined.
    """
    for _ in range(_ROUNDS):
        before = text
        for undo in (_without_backslashes, _without_percents, _without_references, _joined):
            plain = undo(text)
            if plain != text:
                text = plain
                yield text
        if text == before:
            return


def _without_backslashes(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_character, text)
    # Joins the halves of surrogate pairs.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_percents(text: str) -> str:
    return _PERCENT.sub(_characters, text) if "%" in text else text


def _without_references(text: str) -> str:
    return _REFERENCE.sub(lambda match: _character_of(match[0]), text) if "&" in text else text


@lru_cache
def _character_of(reference: str) -> str:
    import html  # late, as above

    return html.unescape(reference)


def _joined(text: str) -> str:
    return _JOIN.sub("", text) if "+" in text else text


def _characters(match: re.Match[str]) -> str:
    return bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")


def _character(match: re.Match[str]) -> str:
    if digits := match["u"] or match["x"]:
        return chr(int(digits, 16))
    return _SHORT.get(match["short"], "")
