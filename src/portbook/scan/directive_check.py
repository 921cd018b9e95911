"""Finds orders to the model: to forget its rules, to hide what it does, to carry data away. Pure: no I/O.

Honest definitions give orders too ("you must call login first"). So phrases have weights, in two groups. What
harms counts for itself; pressure ("important", "before any other tool") only adds to it:

    hard  the harm weighs 3 or more, or 2 with pressure beside it or in a name
    soft  there is harm, or the pressure weighs 2

A phrase in the position of an example does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from portbook.model import JSON
from portbook.scan.directive_phrases import FOREIGN, HARM, PRESSURE, Phrase
from portbook.scan.overreach_phrases import OVERREACH, URGENCY
from portbook.scan.scanned_text_and_finding import DefinedText, ScanCheck, ScanFinding, Tier, plain, sentences
from portbook.text.late_pattern import late_pattern

__all__ = ["find_directives", "find_drift", "weigh", "weigh_directives"]

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


# Finds orders about something private that a tool has nothing to do with.
#
# The name and the first sentence say what a tool is about. A later sentence that orders the model to hand
# over something of a private kind, which the tool is not about, has drifted: a calculator needs no inbox.
# The kinds are few and the words of each many, so that it does not depend on how an order is worded.


class _PrivateKind(NamedTuple):
    things: re.Pattern[str]
    """What people keep private."""
    topic: re.Pattern[str]
    """What a tool is about that may ask for them."""


def _kind(things: str, topic: str) -> _PrivateKind:
    return _PrivateKind(late_pattern(rf"(?<![\w-])(?:{things})(?![\w-])"), late_pattern(rf"{things}|{topic}"))


_KINDS: Final = (
    _kind(
        r"passwords?|passphrases?|credentials?|secrets?|(?:api|private|ssh|signing|secret) keys?|key ?stores?"
        r"|key ?chains?|wallets?|cookies?|cookie \w+|log-?ins?|sign-?ins?|seed phrase|vaults?"
        r"|(?:access|session|auth|bearer|refresh) tokens?"
        r"|\S{0,20}\.(?:ssh|env|aws|netrc|npmrc|pypirc|gnupg|kube)\S{0,30}|\S{0,20}\.config/\S{1,30}",
        r"\b(?:auth\w*|ssh|keys?|tokens?|accounts?|sign(?:s|ing)?|connect\w*|deploy\w*|certificates?"
        r"|sessions?"
        r"|browser|env\w*|configur\w*|settings?|crypt\w*|encrypt\w*|blockchain)\b",
    ),
    _kind(
        r"e-?mails|mails|inbox(?:es)?|contacts|chats?|conversations?|transcripts?|(?:direct"
        r"|private) messages|sms"
        r"|address book|calendars?",
        r"\b(?:e-?mails?|mail\w*|messag\w+|channels?|threads?|meetings?|calls?|tickets?|support|people"
        r"|persons?"
        r"|events?|schedul\w+|notes?|slack|teams|crm|leads?|customers?|agents?|models?|prompts?|summar\w+)\b",
    ),
    _kind(
        r"clipboard|screenshots?|open (?:windows|tabs)|microphone|webcam|keystrokes|brows(?:er|ing) history"
        r"|(?:home|documents?|downloads?|desktop) (?:folder|directory)|photos|tax \w+|medical \w+"
        r"|environment variables|env vars|shell history|source code",
        r"\b(?:screen\w*|windows?|tabs?|audio|video|cameras?|brows\w+|files?|folders?|director\w+|images?"
        r"|pictures?"
        r"|albums?|env\w*|variables?|shell|commands?|code|repositor\w+|projects?|paste\w*|medical|tax\w*"
        r"|pages?)\b",
    ),
)
# To hand something over, as an order: the plain verb, at the start of a clause or after a word that orders.
_HAND_OVER: Final = (
    r"(?:dump|upload|mirror|attach|email|e-mail|mail|send|forward|share|submit|post|copy|paste|put|pass"
    r"|include|append"
    r"|insert|supply|hand over|provide|report|sync|transmit|relay|cat|read|collect|add|give|export|enter)"
)
_ORDERED: Final = late_pattern(
    rf"(?:^|[,:;(\[.`#-] ?|\b(?:and|then|also|please|first|must|should|to|now|always|simply|just|quietly"
    rf"|silently|of"
    rf"|that|who|can|will) )(?<!not to )(?<!not )(?<!how to )(?<!used to )(?<!able to )"
    rf"{_HAND_OVER}\b"
)
_NEGATED: Final = late_pattern(
    r"\b(?:not|never|no|without|cannot|don't|doesn't|none|nothing|refused?|denied|instead of|unless"
    r"|only if|if you have|optional)\b"
)
# Where it is to go: an argument in quotes, an address, a machine.
_TO: Final = late_pattern(
    r"[`'\"][\w.-]+[`'\"]|https?://|@[\w-]+\.\w+|\b[\w-]+\.(?:example|com|net|org|io|dev|xyz|site)\b"
    r"|\b(?:here|below)$"
    r"|\b\w+_\w+\b"
)
_WHY: Final = "orders the model to hand over something private that the tool is not about"


def find_drift(name: str, definition: Mapping[str, JSON]) -> Iterator[ScanFinding]:
    """Yield at most one finding for the description, and one for each argument."""
    description = plain(_text(definition.get("description")))
    own = sentences(description)
    topic = f"{_spaced(name)} {_spaced(plain(_text(definition.get('title'))))} {own[0] if own else ''}"
    yield from _in(own[1:], topic, "/description", _text(definition.get("description")))
    schema = definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for argument, each in properties.items() if isinstance(properties, dict) else ():
        words = _text(each.get("description") if isinstance(each, dict) else None)
        pointer = f"/inputSchema/properties/{argument.replace('~', '~0').replace('/', '~1')}/description"
        yield from _in(sentences(plain(words)), f"{description} {_spaced(argument)} {topic}", pointer, words)


def _in(found: list[str], topic: str, pointer: str, whole: str) -> Iterator[ScanFinding]:
    drifted = [each for each in found if _drifts(each, topic)]
    if not drifted:
        return
    harm, pressure = weigh_directives(whole)
    is_hard = bool(harm or pressure) or any(_TO.search(each) for each in drifted)
    yield ScanFinding(ScanCheck.DIRECTIVES, Tier.HARD if is_hard else Tier.SOFT, pointer, _WHY)


def _drifts(sentence: str, topic: str) -> bool:
    if _NEGATED.search(sentence):
        return False
    for kind in _KINDS:
        at = kind.things.search(sentence)
        if at is None or kind.topic.search(topic) or is_example(sentence, at.start(), at.end()):
            continue
        if _ORDERED.search(sentence, 0, at.start()):
            return True
    return False


def _spaced(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]+", " ", name).casefold()


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""
