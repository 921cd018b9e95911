"""Detectors of secrets by their shape alone. Pure: no I/O.

Each detector is a regular expression and, where shape is not enough, a check of the match. Python's engine
backtracks, so each pattern is written to be linear: a match starts only where a run of its characters starts,
or fails within a bounded number of steps. A detector runs only where the text, folded as in the prefilter,
contains one of its triggers.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator
from math import log2
from typing import Final, Literal, TypeAlias

from portbook.redaction.prefilter import LARGE, LONG_RUN, Prefilter, fold
from portbook.redaction.replacements_and_pointers import NOT_MARKED
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "MARKS",
    "PATTERNS",
    "TRIGGERS",
    "Cards",
    "Span",
    "has_marked_token",
    "is_card_number",
    "spans_of_marked_tokens",
    "spans_of_shapes",
]

Span: TypeAlias = tuple[int, int]

# Where payment card numbers are searched for. Of random numbers of 16 digits, 2.6 % look like one.
Cards: TypeAlias = Literal["strings", "everywhere", "off"]


def _yes(_: str) -> bool:
    return True


class _Detector(NamedTuple):
    triggers: tuple[str, ...]
    """Every text that has a match contains one of them."""
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool] = _yes
    group: str | int = 0
    """The group of the pattern that is the secret; 0 is the whole match."""


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))


# Bits per character. Random text of 40 characters from 64 has about 4.9, a path of words about 4.
_LEAST_ENTROPY: Final = 4.3


def _is_random(text: str) -> bool:
    """Return whether `text` could be an AWS secret: digits, both cases, high entropy."""
    if not (_has_digit(text) and any(map(str.isupper, text)) and any(map(str.islower, text))):
        return False
    shares = [count / len(text) for count in Counter(text).values()]
    return -sum(share * log2(share) for share in shares) > _LEAST_ENTROPY


def _is_basic(text: str) -> bool:
    """Return whether `text` is a name and password of HTTP Basic, not an English word."""
    try:
        return b":" in base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4))
    except binascii.Error:
        return False


def _is_bearer(text: str) -> bool:
    return len(text) >= 20 or _has_digit(text)


# The first digits of card numbers by length: Diners; American Express; Visa, Mastercard, Discover, JCB,
# UnionPay. Rarer lengths are left out: most numbers of such a length are not card numbers.
_ISSUERS: Final = {
    14: late_pattern(r"30[0-5]|3[689]"),
    15: late_pattern(r"3[47]"),
    16: late_pattern(r"4|5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|6011|64[4-9]|65|352[89]|35[3-8]|62"),
}

# The Luhn check doubles every second digit, and adds up the digits of a two-digit product.
_DOUBLED: Final = str.maketrans("0123456789", "0246813579")


def _is_card(text: str) -> bool:
    """Return whether the digits in `text` are a payment card number."""
    digits = text.replace(" ", "").replace("-", "")
    issuers = _ISSUERS.get(len(digits))
    if issuers is None or not issuers.match(digits):
        return False
    summed = digits[-1::-2] + digits[-2::-2].translate(_DOUBLED)
    return (sum(summed.encode()) - ord("0") * len(summed)) % 10 == 0


def is_card_number(number: int) -> bool:
    """Return whether `number` is a payment card number."""
    return 10**13 <= number < 10**16 and _is_card(str(number))


# Tokens with a known prefix: each is a run of at least `RUN` characters.
_TOKENS: Final = (
    _Detector(("akia", "asia"), late_pattern(r"A(?:KI|SI)A[A-Z0-9]{16}")),
    _Detector(("xox", "xapp"), late_pattern(r"(?:xox[abeoprs]|xapp)-[A-Za-z0-9-]{11,}"), _has_digit),
    _Detector(("ghp", "gho", "ghu", "ghs", "ghr"), late_pattern(r"gh[oprsu]_[A-Za-z0-9]{36,}")),
    _Detector(("githubpat",), late_pattern(r"github_pat_[A-Za-z0-9_]{22,}")),
    _Detector(("glpat",), late_pattern(r"glpat-[A-Za-z0-9_-]{20,}")),
    _Detector(("npm",), late_pattern(r"npm_[A-Za-z0-9]{36,}")),
    _Detector(("klive", "ktest"), late_pattern(r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    _Detector(("aiza",), late_pattern(r"AIza[A-Za-z0-9_-]{35}")),
    _Detector(("skproj", "skant", "sksvcacct"), late_pattern(r"sk-(?:proj|ant|svcacct)-[A-Za-z0-9_-]{20,}")),
    _Detector(("pbk",), late_pattern(r"pbk_[A-Za-z0-9_-]{20,}")),
)

# A truncated key has no end line; the remaining lines are still secret.
_PRIVATE_KEY: Final = _Detector(
    ("privatekey",),
    late_pattern(
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----.*?(?:-----END [A-Z0-9 ]{0,60}-----|\Z)",
        re.DOTALL,
    ),
)

_SHAPES: Final = (
    _Detector(
        ("basic",), late_pattern(r"(?ai)\bbasic[ \t]+(?P<secret>[a-z0-9+/]{6,}={0,2})"), _is_basic, "secret"
    ),
    _Detector(
        ("bearer",),
        late_pattern(r"(?ai)\bbearer[ \t]+(?P<secret>[a-z0-9+/._~-]{6,}={0,2})"),
        _is_bearer,
        "secret",
    ),
    # To the last @ before the path: a password may contain an unescaped @.
    _Detector(
        ("://",),
        late_pattern(rf"://[^\s/:@?#\"']*:(?P<secret>{NOT_MARKED}[^\s/?#\"']+)@"),
        group="secret",
    ),
    _PRIVATE_KEY,
)


def _cards(before: str, after: str) -> _Detector:
    """Return the detector of card numbers that are neither after nor before these characters."""
    # Folding turns digits into zeros, hence the trigger.
    return _Detector(
        ("0" * 14,),
        late_pattern(
            rf"(?P<secret>\d{before}(?<!\d\.\d)\d{{3}}"
            r"(?:\d{10,12}|(?P<gap>[ -])(?:\d{4}(?P=gap)\d{4}(?P=gap)\d{4}|\d{6}(?P=gap)\d{4,5})))"
            rf"(?!\.?\d){after}",
            re.ASCII,
        ),
        _is_card,
        "secret",
    )


# Digits that adjoin letters, `_` or `-` are a part of an id; only `everywhere` takes them for a card number.
_CARDS: Final[dict[Cards, tuple[_Detector, ...]]] = {
    "strings": (_cards(r"(?<![\w-].)", r"(?![\w-])"),),
    "everywhere": (_cards(r"(?<!\d\d)", ""),),
    "off": (),
}

# An AWS secret, which has no prefix.
_RANDOM: Final = _Detector(
    ("",),
    late_pattern(rf"[A-Za-z0-9/+](?<![A-Za-z0-9/+_-].)[A-Za-z0-9/+]{{{LONG_RUN - 1}}}(?![A-Za-z0-9/+=_-])"),
    _is_random,
)

# JSON Web Tokens: parts joined by dots, one an object in base64; the shortest object is {"alg":"none"}.
_JWT_TRIGGER: Final = "eyj"
_DOTTED: Final = late_pattern(r"[\w-](?<![\w-].)[\w-]*+(?:\.[\w-]*+)++", re.ASCII)
_HEADER: Final = late_pattern(r"eyJ[\w-]{13}", re.ASCII)

# For the prefilter. Most URLs have no password, so `://` alone is not a trigger.
TRIGGERS: Final = tuple(
    trigger
    for detector in (*_SHAPES, *_CARDS["everywhere"])
    for trigger in detector.triggers
    if trigger != "://"
)
PATTERNS: Final = (r":\/\/[^\/]+@",)
# As the patterns of the tokens spell them: one of these is in every token.
MARKS: Final = (
    *("eyJ", "AKIA", "ASIA", "AIza", "xox", "xapp-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "npm_", "k_live_", "k_test_", "sk-proj-", "sk-ant-", "sk-svcacct-", "pbk_"),
)


class _TriggeredSearch(NamedTuple):
    """One detector behind one of its triggers."""

    trigger: str
    group: str | int
    pattern: re.Pattern[str]
    is_secret: Callable[[str], bool]


def _searches(*detectors: _Detector) -> tuple[_TriggeredSearch, ...]:
    """Return one entry per trigger; where two of a detector occur, it finds its matches twice: harmless."""
    return tuple(
        _TriggeredSearch(trigger, detector.group, detector.pattern, detector.is_secret)
        for detector in detectors
        for trigger in detector.triggers
    )


_BY_TRIGGER: Final[dict[Cards, tuple[_TriggeredSearch, ...]]] = {
    cards: _searches(*_TOKENS, *_SHAPES, *detectors, _RANDOM) for cards, detectors in _CARDS.items()
}

# Of a text without a run of a token's length: neither tokens nor random text.
_WITHOUT_RUNS: Final[dict[Cards, tuple[_TriggeredSearch, ...]]] = {
    cards: _searches(*_SHAPES, *detectors) for cards, detectors in _CARDS.items()
}
_RUNS: Final = Prefilter.of((), marks=MARKS, passes_runs=True)


def _has_material(text: str) -> bool:
    """Return whether a private key has content: a schema may describe the lines around one."""
    return _MATERIAL.search(text) is not None


_MATERIAL: Final = late_pattern(r"-----\s[A-Za-z0-9+/\s]{32}", re.ASCII)

# What no honest text contains by chance: tokens with a prefix of their own, and private keys.
_MARKED: Final = _searches(*_TOKENS, _PRIVATE_KEY._replace(is_secret=_has_material))


def spans_of_shapes(text: str, cards: Cards = "strings") -> Iterator[Span]:
    """Yield the spans of `text` that look like a secret."""
    data = text.encode("utf-8", "surrogatepass")
    plain = fold(data)
    if len(data) >= LARGE and not _RUNS.passes(data):
        yield from _found(_WITHOUT_RUNS[cards], text, plain)
        return
    yield from _found(_BY_TRIGGER[cards], text, plain)
    if _JWT_TRIGGER in plain:
        yield from _web_tokens(text)


def spans_of_marked_tokens(text: str) -> Iterator[Span]:
    """Yield the spans of tokens that have a mark of their own, such as `ghp_` or `AKIA`."""
    return _found(_MARKED, text, fold(text.encode("utf-8", "surrogatepass")))


def has_marked_token(text: str) -> bool:
    """Return whether `text` contains a token that has a mark of its own."""
    return next(spans_of_marked_tokens(text), None) is not None


def _found(searches: tuple[_TriggeredSearch, ...], text: str, plain: str) -> Iterator[Span]:
    for trigger, group, pattern, is_secret in searches:
        if trigger in plain:
            for match in pattern.finditer(text):
                if is_secret(match[group]):
                    yield match.span(group)


def _web_tokens(text: str) -> Iterator[Span]:
    for match in _DOTTED.finditer(text):
        header = _HEADER.search(match[0])
        if header is None:
            continue
        # The second part is usually an object as well, so a token truncated after it is also found.
        if match[0].count(".", header.end()) >= 2 or match[0].find(".eyJ", header.end()) >= 0:
            yield match.start() + header.start(), match.end()
