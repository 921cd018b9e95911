"""Escapes untrusted strings for lines that people read: a log line, a terminal. Pure: no I/O.

Characters that could break the line, move the cursor, be invisible or reorder text are written as escapes.
All others stay, backslashes included: an escaped string is for people, not for parsing back.
"""

from __future__ import annotations

import re
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["MARK", "escaped", "escaped_json", "escaped_json_bytes", "escaped_lines"]

# Marks where text was cut off.
MARK: Final = "…"

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Printable to Python, yet invisible: Unicode's Default_Ignorable_Code_Point, except for categories that
# `isprintable` already excludes, and the blank pattern of braille.
_INVISIBLE: Final = late_pattern(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0000-\U000e0fff]"
)

# Characters that JSON allows unescaped in a string, and that may be invisible.
_BEYOND: Final = late_pattern("[^\n -~]")


def escaped(text: str, limit: int = 256) -> str:
    """Return `text` on one line, with invisible characters escaped, in at most `limit` characters."""
    if len(text) <= limit and text.isprintable() and (text.isascii() or not _INVISIBLE.search(text)):
        return text
    pieces = [_shown(character) for character in text[:limit]]
    if len(text) <= limit and sum(map(len, pieces)) <= limit:
        return "".join(pieces)
    room = limit - len(MARK)
    kept: list[str] = []
    for piece in pieces:
        room -= len(piece)
        if room < 0:  # an escape is never cut in two
            break
        kept.append(piece)
    return "".join(kept) + MARK


def escaped_lines(text: str) -> str:
    """Return `text` with the invisible characters of its lines escaped; nothing is cut off."""
    return "\n".join(escaped(line, limit=10 * len(line) + 1) for line in text.split("\n"))


def escaped_json_bytes(data: bytes) -> bytes:
    """Return `escaped_json` of encoded JSON; most has nothing to escape, and is returned as it is."""
    if data.isascii() and b"\x7f" not in data:
        return data
    return escaped_json(data.decode()).encode()


def escaped_json(text: str) -> str:
    """Return JSON text with the invisible characters of its strings escaped; its value is the same."""
    return _BEYOND.sub(_as_json, text)


def _as_json(found: re.Match[str]) -> str:
    if _shown(found[0]) == found[0]:
        return found[0]
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _shown(character: str) -> str:
    if character.isprintable() and not _INVISIBLE.match(character):
        return character
    code = ord(character)
    if code < 0x100:
        return _SHORT.get(character) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
