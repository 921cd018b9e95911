"""Finds orders to the model: to forget its rules, to hide what it does, to carry data away. Pure: no I/O.

Honest definitions give orders too ("you must call login first"). So phrases have weights, in two groups. What
harms counts for itself; pressure ("important", "before any other tool") only adds to it:

    hard  the harm weighs 3 or more, or 2 with pressure beside it or in a name
    soft  there is harm, or the pressure weighs 2

A phrase in the position of an example does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portbook.scan.directive_phrases import HARM, PRESSURE, Phrase
from portbook.scan.finding import ScanCheck, ScanFinding, Tier
from portbook.scan.foreign_phrases import FOREIGN
from portbook.scan.overreach_phrases import OVERREACH, URGENCY
from portbook.scan.plain_text import plain, sentences
from portbook.scan.scanned_texts import DefinedText
from portbook.text.late_pattern import late_pattern

__all__ = ["find_directives", "is_example", "weigh", "weigh_directives"]

_HARD: Final = 3
_HARD_UNDER_PRESSURE: Final = 2
# Shorter texts are words of an enumeration, or names; scripts beyond ASCII can say more in less.
_LEAST_LENGTH: Final = 12
_HARMS: Final = (*HARM, *OVERREACH, *FOREIGN)
_PRESSES: Final = (*PRESSURE, *URGENCY)
# A longer text is looked at in pieces, which overlap by more than the longest phrase.
_MAX_PIECE: Final = 20_000
_OVERLAP: Final = 1_000


def find_directives(given: DefinedText) -> Iterator[ScanFinding]:
    """Yield at most one finding about a text; it tells the heaviest kinds of phrases in it."""
    if len(given.text) < _LEAST_LENGTH and given.text.isascii():
        return
    text = given.text.replace("_", " ") if given.is_name else given.text
    harm, pressure = weigh_directives(text)
    weight = weigh(harm)
    is_hard = weight >= _HARD or (weight >= _HARD_UNDER_PRESSURE and (bool(pressure) or given.is_name))
    if not is_hard and not harm and sum(each.weight for each in pressure) < _HARD_UNDER_PRESSURE:
        return
    told = sorted(harm or pressure, key=lambda each: -each.weight)[:2]
    why = "; ".join(each.why for each in told)
    yield ScanFinding(ScanCheck.DIRECTIVES, Tier.HARD if is_hard else Tier.SOFT, given.pointer, why)


def weigh(harm: list[Phrase]) -> int:
    """Return the weight of phrases: of those that say the same of a text, the heaviest counts."""
    heaviest: dict[str, int] = {}
    for each in harm:
        heaviest[each.why] = max(each.weight, heaviest.get(each.why, 0))
    return sum(heaviest.values())


def weigh_directives(text: str) -> tuple[list[Phrase], list[Phrase]]:
    """Return the kinds of phrases in a text that do harm, and those that press."""
    found = [
        _in_sentences(sentences(plain(text[at : at + _MAX_PIECE])))
        for at in range(0, len(text), _MAX_PIECE - _OVERLAP)
    ]
    kinds = {kind for piece in found for kind in piece}
    return [each for each in _HARMS if each in kinds], [each for each in _PRESSES if each in kinds]


def _in_sentences(found: list[str]) -> Iterator[Phrase]:
    # Plain loops: fifty patterns meet every sentence of every definition, and all but a few find nothing.
    for phrase in (*_HARMS, *_PRESSES):
        search = phrase.pattern.search
        for sentence in found:
            if search(sentence) is not None and _has(phrase, sentence):
                yield phrase
                break


def _has(phrase: Phrase, sentence: str) -> bool:
    return any(
        not is_example(sentence, each.start(), each.end()) for each in phrase.pattern.finditer(sentence)
    )


# Whether a phrase is an example: quoted, after "such as", or what a tool looks for.

# Words that make an example of a quoted phrase after them.
_INTRODUCED: Final = late_pattern(
    r"\b(?:such as|for example|for instance|e\.g\.?|like|including|"
    r"(?:detect|flag|find|match|block|refus|reject|recogni[sz]|classif|report|catch|scan)\w*)\b"
)
# A sentence that begins with what the tool does about such phrases.
_FLAGGING: Final = late_pattern(
    r"^(?:\W*\w+\W+){0,3}?(?:detects?|flags?|blocks?|refuses?|rejects?|recogni[sz]es?|classif(?:y|ies)"
    r"|scans?|catch(?:es)?|warns?|lints?)\b"
)
_QUOTE: Final = late_pattern(r"\"[^\"]*\"|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
_EXAMPLE_BEFORE: Final = late_pattern(
    r"(?:such as|for example|for instance|e\.g\.?|looks? like|, like)[,:]?\s*(?:[^.]{0,60})$"
)


def is_example(sentence: str, start: int, end: int) -> bool:
    """Return whether the phrase from `start` to `end` of a plain sentence is an example."""
    before = sentence[:start]
    if _FLAGGING.search(before):
        return True
    if _EXAMPLE_BEFORE.search(before):
        return True
    is_quoted = any(quote.start() < end and start < quote.end() for quote in _QUOTE.finditer(sentence))
    return is_quoted and _INTRODUCED.search(before) is not None
