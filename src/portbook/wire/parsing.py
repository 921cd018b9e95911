"""Parses JSON strictly, with the same verdict for the same bytes at every door.

Also refused, beyond RFC 8259's grammar: bytes that are not UTF-8, a byte order mark, lone surrogates, equal
keys in one object at any depth (escaped spellings included), NaN and Infinity, numbers too large for a
double, integers of more than 4,300 digits, nesting beyond `MAX_DEPTH`. Integers stay exact. Pure: no I/O.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

import jiter
import orjson

from portbook.canonical import NotJSON, json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON
from portbook.text.late_pattern import late_pattern

__all__ = [
    "DUPLICATE_KEY",
    "MAX_DEPTH",
    "NOT_TIGHT",
    "NotTight",
    "parse",
    "parse_strictly",
    "parse_tight",
]

# The limit of the parser library; a test pins it, so that a new release cannot change it unnoticed.
MAX_DEPTH: Final = 201

DUPLICATE_KEY: Final = "an object has the same key twice; keep one"

# The library's messages may quote a key of the sender, so each is replaced, by how it begins.
_WORDS: tuple[tuple[str, str], ...] = (
    ("Detected duplicate key", DUPLICATE_KEY),
    ("recursion limit", f"nested deeper than {MAX_DEPTH} levels; flatten it"),
    ("number out of range", "a number has too many digits; send it as a string"),
    ("trailing characters", "extra text follows the value; send one value per message"),
    ("trailing comma", "trailing comma before a closing bracket; remove it"),
    ("EOF while parsing", "the text is incomplete"),
    ("control character", "unescaped control character in a string; write it as \\u00XX"),
    ("invalid unicode code point", "a string is not valid UTF-8; encode it as UTF-8"),
    ("unexpected end of hex escape", "a \\u escape is incomplete or half of a surrogate pair; complete it"),
    ("lone leading surrogate", "a \\u escape is half of a surrogate pair; add the second half"),
    ("invalid escape", "unknown escape in a string; escape the backslash itself"),
    ("invalid number", "a number is not valid JSON; fix its digits, sign or exponent"),
    ("key must be a string", "an object's key is not a string; put it in double quotes"),
    ("expected value", "a JSON value is expected here"),
    ("expected ident", "a JSON value is expected here"),
    ("expected", "a comma, colon or closing bracket is missing; add it"),
)
# Where a message with spaces has one first: after "jsonrpc", or after "method" or "params". We write none.
_SPACE: Final = ord(" ")
_AFTER_NAME: Final = 11

# Up to here the parser looks up every short string among those it has seen: methods and names come again. In
# larger frames that takes longer than to make each anew, even of the names in the rows of a list.
_SMALL: Final = 1024


class NotTight(Enum):
    """In place of the value of a frame that is not written as we would write it, or not valid at all."""

    NOT_TIGHT = "not tight"


NOT_TIGHT: Final = NotTight.NOT_TIGHT

_POSITION = late_pattern(r"at line (\d+) column (\d+)$")


def parse(frame: bytes) -> JSON:
    """Parse `frame` as one JSON value.

    Raises `Refused` with `NOT_JSON` where it is not valid.
    """
    value = parse_tight(frame)
    return parse_strictly(frame) if value is NOT_TIGHT else value


def parse_tight(frame: bytes) -> JSON | NotTight:
    """Parse `frame`, if it is valid and we would write its value as these very bytes.

    Such a value has lost no equal key and holds no infinity. Most clients write JSON as we do, and writing it
    costs half of looking for both.
    """
    try:
        if frame[_AFTER_NAME] == _SPACE or frame[_AFTER_NAME - 1] == _SPACE:
            return NOT_TIGHT
        value: Any = (
            jiter.from_json(frame) if len(frame) <= _SMALL else jiter.from_json(frame, cache_mode="none")
        )
        if orjson.dumps(value) == frame:
            return value
    except (ValueError, IndexError, orjson.JSONEncodeError):
        pass  # not JSON, shorter than any message, or an integer from 2^64 on
    return NOT_TIGHT


def parse_strictly(frame: bytes) -> JSON:
    """Parse `frame`, however it is written.

    Raises `Refused` with `NOT_JSON` where it is not valid.
    """
    try:
        value: Any = jiter.from_json(frame, allow_inf_nan=False, catch_duplicate_keys=True, cache_mode="keys")
    except ValueError as error:
        if not frame.strip():
            raise _not_json("the text is empty; send one JSON value") from None
        if frame.startswith(b"\xef\xbb\xbf"):
            raise _not_json("starts with a byte order mark; send UTF-8 without one") from None
        raise _not_json(_describe(str(error))) from None
    try:
        json_bytes(value)  # 1e999 is valid grammar and becomes infinity
    except NotJSON:
        raise _not_json("a number is too large for a double; send it as a string") from None
    return value


def _describe(problem: str) -> str:
    words = next((ours for theirs, ours in _WORDS if problem.startswith(theirs)), "not valid JSON")
    position = _POSITION.search(problem)
    return f"{words} (line {position[1]}, column {position[2]})" if position else words


def _not_json(message: str) -> Refused:
    return Refused(Reason.NOT_JSON, (Finding("", message, "json", ""),))
