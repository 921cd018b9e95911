"""Finds orders about something private that a tool has nothing to do with. Pure: no I/O.

The name and the first sentence say what a tool is about. A later sentence that orders the model to hand over
something of a private kind, which the tool is not about, has drifted: a calculator needs no inbox. The kinds
are few and the words of each many, so that it does not depend on how an order is worded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from portbook.model import JSON
from portbook.scan.directive_weights import is_example, weigh_directives
from portbook.scan.finding import ScanCheck, ScanFinding, Tier
from portbook.scan.plain_text import plain, sentences
from portbook.text.late_pattern import late_pattern

__all__ = ["find_drift"]


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
