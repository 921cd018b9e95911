"""Finds characters that people do not see, on the raw text. Pure: no I/O.

Invisible characters have honest uses, which are taken out first: joiners in emoji and between the letters of
scripts that need them, flags in tag characters, one variation selector behind a symbol, and a byte order mark
at the start.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from portbook.scan.scanned_text_and_finding import DefinedText, ScanCheck, ScanFinding, Tier, is_mixed
from portbook.text.late_pattern import late_pattern

__all__ = ["find_hidden"]

# A black flag, the letters of a region, the end mark.
_FLAG: Final = late_pattern("\U0001f3f4[\U000e0061-\U000e007a\U000e0030-\U000e0039]{2,7}\U000e007f")
# One selector after a symbol, which chooses between its text form and its picture.
_SELECTED: Final = late_pattern(
    "(?<=[^\\s\ufe00-\ufe0f])[\ufe0e\ufe0f](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
_BREAKS: Final = late_pattern(r"[\t\n\r]")
# More blank lines than a screen has, or more blanks than any table is padded with.
_OUT_OF_SIGHT: Final = late_pattern(r"(?:\n[^\S\n]*){20}|[^\S\n]{200}")
_WORDS: Final = late_pattern(r"[^\W\d_]{3,}")
_JOINERS: Final = late_pattern("[\u200c\u200d]")


class _HiddenKind(NamedTuple):
    pattern: str
    tier: Tier
    why: str


_KINDS: Final = (
    _HiddenKind(
        "[\U000e0000-\U000e007f]", Tier.HARD, "has tag characters, which nobody sees and a model can read"
    ),
    _HiddenKind(
        "[\u202d\u202e]",
        Tier.HARD,
        "has an override of the writing direction: it is shown in a different order",
    ),
    _HiddenKind(
        "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2}|(?<=[ -~])[\U000e0100-\U000e01ef]",
        Tier.HARD,
        "has variation selectors in a row, which can carry hidden bytes",
    ),
    _HiddenKind(
        "[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]",
        Tier.HARD,
        "has control characters of terminals",
    ),
    _HiddenKind(
        "[\u2061-\u2064\u3164\u115f\u1160\uffa0\u180e]", Tier.HARD, "has invisible operators or fillers"
    ),
    _HiddenKind(
        "[!-~][\u200b\u2060\ufeff]|[\u200b\u2060\ufeff][!-~]", Tier.HARD, "has zero-width characters in words"
    ),
    _HiddenKind(
        "(?<![!-~])[\u200b\u2060\ufeff](?![!-~])",
        Tier.SOFT,
        "has zero-width characters, as scripts without blanks do",
    ),
    _HiddenKind(
        "[\u202a-\u202c\u200e\u200f\u2066-\u2069\u061c]", Tier.SOFT, "has marks of the writing direction"
    ),
    _HiddenKind(
        "[\u2000-\u200a\u205f\u3000\u00a0\u202f]{8}|[\u2000-\u200a]{5}|[ \t]*\t[ \t]{15,}(?=\n|$)",
        Tier.HARD,
        "has blanks of many kinds in a row, which can carry hidden bits",
    ),
    _HiddenKind("[\ue000-\uf8ff]", Tier.SOFT, "has characters for private use"),
)
_PATTERNS: Final = tuple((late_pattern(kind.pattern), kind) for kind in _KINDS)


def find_hidden(given: DefinedText) -> Iterator[ScanFinding]:
    """Yield a finding for each kind of hidden character in a text."""
    text = given.text
    if text.isascii() and text.isprintable() and _OUT_OF_SIGHT.search(text) is None:
        return
    if given.is_name and _BREAKS.search(text):
        yield _finding(given, Tier.HARD, "has line breaks or tabs, which no name has")
    if _OUT_OF_SIGHT.search(text.strip()):
        yield _finding(given, Tier.HARD, "has text behind so many blanks that it is out of sight")
    if any(map(is_mixed, _WORDS.findall(text))):
        tier = Tier.HARD if given.is_name else Tier.SOFT
        yield _finding(given, tier, "has letters of other scripts that stand in for Latin ones")
    # Zero-width spaces and joiners at the ends of words come from web pages; a joiner has to join something.
    if _has_stray_joiner(text):
        yield _finding(given, Tier.HARD, "has joiners that join nothing, which can carry hidden bits")
    rest = _SELECTED.sub("", _FLAG.sub("", text.removeprefix("\ufeff")))
    for pattern, kind in _PATTERNS:
        if pattern.search(rest):
            yield _finding(given, kind.tier, kind.why)


def _finding(given: DefinedText, tier: Tier, why: str) -> ScanFinding:
    return ScanFinding(ScanCheck.HIDDEN, tier, given.pointer, why)


def _has_stray_joiner(text: str) -> bool:
    return any(not _joins(text, each.start()) for each in _JOINERS.finditer(text))


def _joins(text: str, at: int) -> bool:
    """Return whether a joiner stands between letters beyond ASCII, or after a symbol."""
    before = text[at - 1] if at else ""
    return bool(before) and not before.isascii() and unicodedata.category(before)[0] in "LMS"
