"""Text as a model reads it: wide and styled letters made ordinary, invisible ones gone. Pure: no I/O."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["is_mixed", "look_alike", "misread", "plain", "respelled", "sentences"]

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
# What is read as a letter in ASCII as well.
_LIKE_ASCII: Final = str.maketrans("015", "ols")

# Letters of other scripts that look like Latin ones, by Unicode's table of confusable characters.
_LIKE_LATIN: Final = str.maketrans(
    "аеорсухіјѕԁԛԝһαοριτνκυАВЕКМНОРСТХІЈЅԌΑΒΕΖΗΙΚΜΝΟΡΤΥΧɡıƖ",
    "aeopcyxijsdqwhaopitvkuABEKMHOPCTXIJSGABEZHIKMNOPTYXgil",
)


def plain(text: str) -> str:
    """Return a text in small ordinary letters, with single blanks and without invisible characters."""
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).translate(_QUOTES)
    return _BLANKS.sub(" ", folded.translate(_LIKE_LATIN)).casefold()


def look_alike(name: str) -> str:
    """Return a name as the eye reads it: two names with the same result look the same."""
    return plain(name).replace("-", "_")


def misread(name: str) -> str:
    """Return a name as the eye may misread it: digits as the letters that they look like."""
    return look_alike(name).translate(_LIKE_ASCII).replace("rn", "m").replace("vv", "w")


def is_mixed(word: str) -> bool:
    """Return whether letters of other scripts stand in for Latin ones among Latin letters."""
    has_latin = any(each.isascii() and each.isalpha() for each in word)
    return has_latin and any(ord(each) in _LIKE_LATIN for each in word)


def sentences(text: str) -> list[str]:
    """Return the sentences of a plain text."""
    parts = re.split(_SENTENCE_END.pattern, text)
    return [each.replace("\n", " ").strip() for each in parts if each.strip()]


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
