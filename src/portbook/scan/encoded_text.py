"""Finds text that decodes into commands, addresses or directives, or spells one oddly. Pure: no I/O."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from portbook.scan.directive_check import weigh, weigh_directives
from portbook.scan.scanned_text_and_finding import DefinedText, ScanCheck, ScanFinding, Tier
from portbook.text.late_pattern import late_pattern

__all__ = ["find_encoded", "respelled"]

# Shorter runs are words, and decode into nothing that could be read.
_BASE64: Final = late_pattern(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{16,8192}={0,2}(?![A-Za-z0-9+/_=-])")
_HEX: Final = late_pattern(r"(?<![0-9A-Za-z])(?:0x)?((?:[0-9A-Fa-f]{2}[ :]?){8,4096})(?![0-9A-Za-z])")
_BYTES: Final = late_pattern(r"(?:\\x[0-9A-Fa-f]{2}){6,2048}")
_UNITS: Final = late_pattern(r"(?:\\u[0-9A-Fa-f]{4}){6,2048}")
_PERCENT: Final = late_pattern(r"(?:%[0-9A-Fa-f]{2}){6,2048}")

# What decoded text has to have to count: an address, or a command with what it does.
_DANGEROUS: Final = late_pattern(
    r"(?i)https?://|\b(?:curl|wget)\s|\brm\s+-r|\|\s*(?:ba|z)?sh\b|\bpowershell\b|/dev/tcp/|\beval\(|"
    r"\bexec\(|"
    r"\bos\.system|\bsubprocess|\bchmod\s|\.ssh/|/etc/passwd|\bnc\s+-"
)
# A cipher that every model knows by name.
_SHIFTED: Final = late_pattern(r"(?i)\brot-?13\b|\bcaesar\b|\bshift(?:ed)? by (?:13|thirteen)\b")
_WHY: Final = "decodes into a command, an address or a directive, which nobody sees who reads it"

_SPELLED: Final = "spells a directive in letters that a pattern would miss"
# One phrase of the heavy kinds.
_HARM: Final = 2

# Text that was encoded twice is decoded twice, and no further.
_ROUNDS: Final = 3
# What a cheap look needs to see before anything is decoded.
_WORTH_IT: Final = late_pattern(r"[A-Za-z0-9+/_-]{16}|(?:[0-9A-Fa-f]{2}[ :]){7}|(?:\\x|\\u|%)[0-9A-Fa-f]{2}")


def find_encoded(given: DefinedText) -> Iterator[ScanFinding]:
    """Yield at most one finding about a text."""
    found = any(_is_dangerous(decoded) for decoded in _decoded(given.text, _ROUNDS))
    if found or (_SHIFTED.search(given.text) and _is_dangerous(codecs.decode(given.text, "rot13"))):
        yield ScanFinding(ScanCheck.ENCODED, Tier.HARD, given.pointer, _WHY)
    elif _spells_harm(given.text):
        yield ScanFinding(ScanCheck.ENCODED, Tier.HARD, given.pointer, _SPELLED)


def _spells_harm(text: str) -> bool:
    """Return whether a text weighs more as it is read than as it is written."""
    candidates = list(respelled(text))
    if not candidates:
        return False
    written = _weight(text)
    return any(_weight(each) >= max(_HARM, written + 1) for each in candidates)


def _weight(text: str) -> int:
    return weigh(weigh_directives(text)[0])


def _is_dangerous(text: str) -> bool:
    return _DANGEROUS.search(text) is not None or bool(weigh_directives(text)[0])


def _decoded(text: str, rounds: int) -> Iterator[str]:
    """Yield every readable text that a part of `text` decodes into, in a few rounds."""
    if not rounds or _WORTH_IT.search(text) is None:
        return
    for decoded in _once(text):
        yield decoded
        yield from _decoded(decoded, rounds - 1)


def _once(text: str) -> Iterator[str]:
    pieces = [each[0] for each in _BASE64.finditer(text)]
    candidates: list[bytes | None] = [_of_base64(each) for each in pieces]
    if len(pieces) > 1:
        candidates.append(_of_base64("".join(pieces)))
    candidates += [_of_hex(each[1]) for each in _HEX.finditer(text)]
    candidates += [_of_hex(each[0].replace("\\x", "")) for each in _BYTES.finditer(text)]
    for candidate in candidates:
        if candidate is not None and (found := _readable(candidate)) is not None:
            yield found
    yield from (unquote(each[0], errors="replace") for each in _PERCENT.finditer(text))
    for each in _UNITS.finditer(text):
        yield re.sub(r"\\u(....)", lambda unit: chr(int(unit[1], 16)), each[0])


def _of_base64(text: str) -> bytes | None:
    ordinary = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(ordinary + "=" * (-len(ordinary) % 4))
    except binascii.Error:
        return None


def _of_hex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text.replace(":", " "))
    except ValueError:
        return None


def _readable(data: bytes) -> str | None:
    """Return decoded bytes as text, where they are one."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each.isprintable() or each in "\n\r\t" for each in text) else None


# Text that is spelled so that a pattern misses it and a model does not.
#
# Letters with blanks between them, digits for letters, and HTML entities are undone. An honest text has few
# of these, and what they spell is no order: a finding counts if an order shows only in the text that was
# undone.

# Six letters or more, each alone.
_SPACED: Final = late_pattern(r"(?<![\w'])(?:[^\W\d_](?:[ .*_-]|\u200b)){5,400}[^\W\d_](?![\w'])")
_BETWEEN_WORDS: Final = late_pattern(r" {2,}")
_SEPARATOR: Final = late_pattern(r"[ .*_\u200b-]")
# A word with a digit or a sign before one of its letters, as in "1gn0re"; "base64" is ordinary.
_LEET_WORD: Final = late_pattern(r"(?<![\w@$])(?=[\w@$]{0,30}[013457@$][a-z])[\w@$]{3,30}")
_LEET: Final = str.maketrans("013457@$", "oieastas")
_ENTITY: Final = late_pattern(r"&(?:#\d{1,7}|#x[0-9a-fA-F]{1,6}|[a-zA-Z]{2,8});")
# What is spelled without any blank is looked for without blanks.
_RUN_TOGETHER: Final = late_pattern(
    r"(?:ignore|disregard|forget)(?:all)?(?:of)?(?:the|your|any)?(?:previous|prior|above|earlier)"
    r"(?:instructions|rules|prompts)"
)


def respelled(text: str) -> Iterator[str]:
    """Yield `text` with each kind of spelling undone that it has."""
    if _ENTITY.search(text):
        yield html.unescape(text)
    small = text.casefold()
    if _SPACED.search(small):
        # Two blanks or more end a word; so they stay while the single ones go.
        joined = _BETWEEN_WORDS.sub("\n", small)
        closed = _SPACED.sub(lambda run: _SEPARATOR.sub("", run[0]), joined).replace("\n", " ")
        yield re.sub(_RUN_TOGETHER.pattern, "ignore all previous instructions", closed)
    # One such word is a name, as "p5js" is.
    if len(_LEET_WORD.findall(small)) > 1:
        yield _LEET_WORD.sub(lambda word: word[0].translate(_LEET), small)
