"""Secrets in text by their name: `password=…`, `"token": "…"`, `Authorization: …`. Pure: no I/O.

The name stays, the value is redacted. A name followed by `=`, or a quoted name followed by `:`, is enough. A
bare `:` also occurs in prose, so the text after it has to look like a secret. Linear: names followed by a
sign are searched for in the folded text, where each has one spelling. For each sign, only a bounded number of
characters before it and the value after it are examined, and the search continues after the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from portbook.canonical import json_bytes
from portbook.redaction.detectors import Span
from portbook.redaction.prefilter import LARGE, Prefilter, fold, literal
from portbook.redaction.replacements_and_pointers import NOT_MARKED, is_mark
from portbook.redaction.secret_names import SecretNames
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = ["KeyValueText"]

# A signature is a secret only as a parameter of a URL.
_ADDRESS: Final = ("?sig", "&sig", ";sig")

_ANY_SIGN: Final = late_pattern("[:=]")
_SIGN: Final = late_pattern(rf"(?:=(?![=>]|//)\s*+(?![;,&<>])|:(?![=>]|//)\s*+){NOT_MARKED}")
# Allowed between a name and its sign: quotes, and spaces, some of which are several bytes.
_BETWEEN: Final = r"[\x00-\x20\x22\x27\x5c\x7f-\xff]"
# The same in JSON, where a line end is an escape; folding turns digits into zeros.
_BETWEEN_IN_JSON: Final = rf"(?:\\(?:[bfnrt]|u000[0a-f])|{_BETWEEN})"
# How far before its sign a name may start, with the spaces and quotes between them.
_REACH: Final = 64

# The first characters of the next three patterns; most values start with none of them.
_OPENINGS: Final = ("\\", '"', "'", "{", "[")
_QUOTE: Final = late_pattern(r"(?<!\\)(\\*+)([\"'])")
# An inline table, which has names of its own; a value in braces, as in connection strings, is not a table.
_TABLE: Final = late_pattern(r"\{\s*[\w.-]+\s*[=:]\s*[\"']", re.ASCII)
_BRACKETS: Final = late_pattern(r"[\[{][^\]}]*[\]}]?")
# A password of several words ends with a semicolon, as in connection strings.
_PHRASE: Final = late_pattern(r"[^\s;,&\"'<>=]+(?: +[^\s;,&\"'<>=]+)++(?=;)")
_WORD: Final = late_pattern(r"[^\s;,&\"'<>]+")
_SCALAR: Final = late_pattern(r"[^\s;,&\"'<>\]}]+")
_LINE: Final = late_pattern(r"[^\r\n\"']+")
_ODD: Final = late_pattern(r"[0-9!@#$%^*+=_~|/\\]")

# Headers whose value is the rest of the line, if it looks like credentials. Bounded, so that a miss is cheap.
_HEADERS: Final = ("authorization", "cookie")
_LONGEST_HEADER: Final = max(map(len, _HEADERS))
_CREDENTIALS: Final = late_pattern(
    r"[A-Za-z][\w-]{0,40}[ \t]{1,8}\S{0,64}?[0-9=+/_.~-]|\S{0,64}?[0-9=]", re.ASCII
)

# Longer than words of prose are.
_LONG_WORD: Final = 16

# A colon and a short word without odd characters: most colons of a text are of this kind, and need no more.
_EVEN: Final = r"[^\s;,&\"'<>0-9!@#$%^*+=_~|/\\]"
_PROSE: Final = late_pattern(
    rf":(?![=>]|//)\s*+(?:(?![\[{{]){_EVEN}{{1,{_LONG_WORD - 1}}}+(?=[\s;,&\"'<>]|\Z)|(?=[;,&<>]|\Z))"
)


class _Name(NamedTuple):
    text: str
    is_quoted: bool


class KeyValueText:
    """Finds the values of secret names in text."""

    __slots__ = ("_names", "_prefilter", "_signs", "patterns")

    def __init__(self, names: SecretNames) -> None:
        self._names = names
        # Long names before their own prefixes, so that most match at the first attempt.
        ends = sorted({fold(name.encode()) for name in (*names.all, "sig")}, key=len, reverse=True)
        self.patterns = tuple(f"{literal(end)}{_BETWEEN}*[:=]" for end in ends)
        """For the prefilter: one of them matches every folded text that has a span."""
        self._prefilter = Prefilter.of((), patterns=self.patterns)
        self._signs = late_pattern(f"(?:{'|'.join(map(re.escape, ends))}){_BETWEEN}*+[:=]")

    def names_in_json(self) -> tuple[str, ...]:
        """Return patterns, one of which matches folded JSON that has a secret name as a key or in a text."""
        names = (json_bytes(name)[1:-1] for name in sorted({*self._names.all, "sig"}))
        return tuple(f"{literal(fold(name))}{_BETWEEN_IN_JSON}*[:=]" for name in names)

    def spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of values of secret names in `text`."""
        # Looking for the first name in a large text takes Python sixty times as long.
        if len(text) >= LARGE and not self._prefilter.passes(text.encode("utf-8", "surrogatepass")):
            return
        at = 0
        for place in self._places(text):
            if place < at or _is_prose(text, place):
                continue
            sign = _SIGN.match(text, place)
            if sign is None:
                continue
            at = sign.end()
            name = _name_before(text, place)
            is_address = text[place] == "=" and name.text.lower().endswith(_ADDRESS)
            if is_address or self._names.end(name.text):
                start, end = _value(text, sign, name)
                if start < end and not is_mark(text[start:end]):
                    yield start, end
                at = max(end, at)

    def _places(self, text: str) -> Iterator[int]:
        """Yield the positions of signs that may have a secret name before them.

        Folding moves characters but keeps all signs, so the nth sign is the same in both texts.
        """
        plain = fold(text.encode("utf-8", "surrogatepass"))
        signs = _ANY_SIGN.finditer(text)
        at = 0
        for match in self._signs.finditer(plain):
            before = plain.count("=", at, match.end() - 1) + plain.count(":", at, match.end() - 1)
            at = match.end()
            yield next(islice(signs, before, None)).start()


def _is_prose(text: str, place: int) -> bool:
    """Return whether the sign is a colon between a bare word and a short one, as in prose.

    A cheap test for what `_header_value` finds in the end; a no says nothing.
    """
    return (
        text[place - 1 : place].isalnum()
        and _PROSE.match(text, place) is not None
        and not text[max(0, place - _LONGEST_HEADER) : place].lower().endswith(_HEADERS)
    )


def _name_before(text: str, end: int) -> _Name:
    before = text[max(0, end - _REACH) : end].rstrip()
    name = before.rstrip("\\\"'")
    return _Name(name, len(name) < len(before))


def _value(text: str, sign: re.Match[str], name: _Name) -> Span:
    """Return the span of the value after `sign`; empty if there is none."""
    start = sign.end()
    if text.startswith(_OPENINGS, start):
        if quote := _QUOTE.match(text, start):
            return quote.end(), _closing(text, quote)
        if _TABLE.match(text, start):
            return start, start
        if (brackets := _BRACKETS.match(text, start)) and not is_mark(brackets[0]):
            return brackets.span()
    if sign[0][0] == ":" and not name.is_quoted:
        return _header_value(text, start, name.text)
    word = _SCALAR if name.is_quoted else _WORD
    value = _PHRASE.match(text, start) or word.match(text, start)
    return value.span() if value else (start, start)


def _header_value(text: str, start: int, name: str) -> Span:
    """Return the span of the value after a bare colon; empty if it looks like prose."""
    if name.lower().endswith(_HEADERS):
        value = _LINE.match(text, start) if _CREDENTIALS.match(text, start) else None
    else:
        value = _WORD.match(text, start)
        if value and len(value[0]) < _LONG_WORD and not _ODD.search(value[0]):
            value = None
    return value.span() if value else (start, start)


def _closing(text: str, opening: re.Match[str]) -> int:
    """Return the end of a quoted value: the next such quote with no more backslashes than the opening one."""
    for quote in _QUOTE.finditer(text, opening.end()):
        if quote[2] == opening[2] and len(quote[1]) <= len(opening[1]):
            return quote.start()
    return len(text)
