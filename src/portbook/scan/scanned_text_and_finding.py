"""What a scan reads and says: every text of a definition, made plain, and a finding there. Pure: no I/O.

A finding is in our words alone. It never repeats what the server wrote, which may be an attack or a secret.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from portbook.model import JSON, JSONObject
from portbook.schema.violation_wording import whole_pointer
from portbook.text.late_pattern import late_pattern

__all__ = ["DefinedText", "ScanCheck", "ScanFinding", "Tier", "is_mixed", "plain", "sentences", "texts_of"]


class ScanCheck(StrEnum):
    """The checks, by what they look for."""

    HIDDEN = "hidden"
    """Characters that people do not see and models read."""
    SHADOWING = "shadowing"
    """A definition that reaches over to the tool of a different server, or looks like it."""
    ENCODED = "encoded"
    """Text that decodes into commands, addresses or directives."""
    DIRECTIVES = "directives"
    """Orders to the model that are about more than the tool."""
    EFFECT = "effect"
    """A description that promises a different effect than the name, the arguments and the hints."""
    SECRETS = "secrets"
    """A token or a private key in the definition."""


class Tier(StrEnum):
    """How sure a finding is."""

    HARD = "hard"
    """No honest definition needs it: the definition is withheld."""
    SOFT = "soft"
    """Honest definitions have it at times: a new or changed definition waits for a person."""


@dataclass(frozen=True, slots=True)
class ScanFinding:
    """One finding."""

    check: ScanCheck
    tier: Tier
    pointer: str
    """A JSON Pointer into the definition."""
    why: str

    def as_data(self) -> JSONObject:
        """Return the finding as JSON."""
        return {
            "check": self.check.value,
            "tier": self.tier.value,
            "pointer": self.pointer,
            "why": self.why,
        }


# Every text of a definition that a model may read, with its place.


# Deeper than any schema that a validator takes.
_MAX_DEPTH: Final = 200

# Pictures are no text, and their data would be taken for hidden text.
_NOT_READ: Final = frozenset({"icons"})


class DefinedText(NamedTuple):
    """A text of a definition."""

    pointer: str
    text: str
    is_name: bool = False
    """Whether it is the name of a member; its place is then that of the member."""


def texts_of(name: str, definition: Mapping[str, JSON]) -> Iterator[DefinedText]:
    """Yield the name of a definition, and every text and every name of a member in it."""
    if name:
        yield DefinedText("/name", name, is_name=True)
    for part, value in definition.items():
        if part not in _NOT_READ and part != "name":
            yield from _below((part,), value)


def _below(path: tuple[str | int, ...], value: JSON) -> Iterator[DefinedText]:
    if isinstance(value, str):
        yield DefinedText(whole_pointer(path), value)
    if len(path) > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield DefinedText(whole_pointer((*path, name)), name, is_name=True)
            yield from _below((*path, name), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _below((*path, index), each)


# Text as a model reads it: wide and styled letters made ordinary, invisible ones gone.

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
