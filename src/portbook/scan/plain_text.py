"""Text as a model reads it: wide and styled letters made ordinary, invisible ones gone. Pure: no I/O."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["is_mixed", "plain", "sentences"]

_BLANKS: Final = late_pattern(r"[^\S\n]+")
_INVISIBLE: Final = late_pattern(
    r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ufe00-\ufe0f]"
)
_QUOTES: Final = str.maketrans(
    {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2010": "-", "\u2011": "-"}
)
# A full stop inside of a path, an address or an abbreviation ends no sentence, and neither do three dots.
_SENTENCE_END: Final = late_pattern(
    r"(?<!e\.g)(?<!i\.e)(?<!\.)(?!\.\.)[.!?;]+(?=\s|$|[<\"'`)\]])|\n{2,}|\n(?=\s*[-*#\d])|。"
)
# Letters of other scripts that look like Latin ones, by Unicode's table of confusable characters.
_LIKE_LATIN: Final = str.maketrans(
    "аеорсухіјѕԁԛԝһαοριτνκυАВЕКМНОРСТХІЈЅԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡıƖ",
    "aeopcyxijsdqwhaopitvkuABEKMHOPCTXIJSGABEZHIKMNOPTYXgil",
)


def plain(text: str) -> str:
    """Return a text in small ordinary letters, with single blanks and without invisible characters."""
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_QUOTES)
    return _BLANKS.sub(" ", folded.translate(_LIKE_LATIN)).casefold()


def is_mixed(word: str) -> bool:
    """Return whether letters of other scripts stand in for Latin ones among Latin letters."""
    has_latin = any(each.isascii() and each.isalpha() for each in word)
    return has_latin and any(ord(each) in _LIKE_LATIN for each in word)


def sentences(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    parts = re.split(_SENTENCE_END.pattern, text)
    return [each.replace("\n", " ").strip() for each in parts if each.strip()]
