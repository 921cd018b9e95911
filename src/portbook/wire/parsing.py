"""Parses JSON strictly, with the same verdict for the same bytes at every door; finds the id to echo.

Also refused, beyond RFC 8259's grammar: bytes that are not UTF-8, a byte order mark, lone surrogates, equal
keys in one object at any depth (escaped spellings included), NaN and Infinity, numbers too large for a
double, integers of more than 4,300 digits, nesting beyond `MAX_DEPTH`. Integers stay exact. Pure: no I/O.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import Any, Final, TypeAlias

import jiter
import orjson

from portbook.canonical import NotJSON, json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern

__all__ = [
    "DUPLICATE_KEY",
    "MAX_DEPTH",
    "MAX_ID_BYTES",
    "NOT_TIGHT",
    "NO_ID",
    "Id",
    "NotTight",
    "UnusableId",
    "parse",
    "parse_strictly",
    "parse_tight",
    "problem_of",
    "read_id",
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

# Up to here the parser looks up every short string among those it has seen: methods and names come again.
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
            jiter.from_json(frame) if len(frame) <= _SMALL else jiter.from_json(frame, cache_mode="keys")
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


# The answer echoes the id; with a megabyte of it, that would be an amplifier.
MAX_ID_BYTES: Final = 256

# A message's id: its bytes as they are in the message, or null where it has none that can be echoed.
Id: TypeAlias = bytes


class UnusableId(bytes):
    """Null, in place of an id that cannot be echoed, and the problem with it; none where there is no id."""

    problem: str | None

    @classmethod
    def because(cls, problem: str | None) -> UnusableId:
        """Return null, with the problem that the id has."""
        null = cls(b"null")
        null.problem = problem
        return null


NO_ID: Final = UnusableId.because(None)


def problem_of(identifier: Id) -> str | None:
    """Return the problem with an id; None where it can be echoed, and where there is none."""
    return identifier.problem if isinstance(identifier, UnusableId) else None


# Possessive: backtracking is never needed, and its bookkeeping would take 100 bytes per byte.
_TOKENS = late_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[\[\]{}]|[^\s",:\[\]{}]++')


def read_id(message: JSONObject, frame: bytes) -> Id:
    """Return the id of `message`, with its bytes as they are in `frame`.

    Only a string or a number of at most `MAX_ID_BYTES` can be echoed; any other id is answered as null.
    """
    value = message.get("id")
    if value is None and "id" not in message:
        return NO_ID
    if type(value) is int and value:  # zero may be written as -0; every other integer has one spelling
        token = b"%d" % value
    elif isinstance(value, str) and frame.find(b"\\") < 0:  # without escapes, a string has one spelling
        token = b'"' + value.encode() + b'"'
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        token = _id_token(frame)
    else:
        return UnusableId.because("must be a string or a number")
    if len(token) > MAX_ID_BYTES:
        return UnusableId.because(f"longer than {MAX_ID_BYTES} bytes; use a shorter id")
    return token


def _id_token(frame: bytes) -> bytes:
    """Find the bytes of the top-level member `id` in a frame that is known to have one."""
    depth = 0
    expects_key = True
    is_id = False
    for match in _TOKENS.finditer(frame):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            expects_key = depth == 1
        elif depth == 1 and expects_key:
            is_id = token == b'"id"' or (b"\\" in token and json.loads(token) == "id")
            expects_key = False
        elif depth == 1:
            if is_id:
                return token
            expects_key = True
    raise AssertionError("a parsed frame has lost its id")  # pragma: no cover
