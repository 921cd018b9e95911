"""Text that is spelled so that a pattern misses it and a model does not. Pure: no I/O.

Letters with blanks between them, digits for letters, and HTML entities are undone. An honest text has few of
these, and what they spell is no order: a finding counts if an order shows only in the text that was undone.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["respelled"]

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
