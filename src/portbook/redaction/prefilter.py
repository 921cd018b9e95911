"""A cheap test whether bytes may contain a secret; most do not, and need no search. Pure: no I/O.

Bytes and triggers are folded: ASCII letters to lower case, digits to `0`, separators dropped. A trigger that
is in the bytes is also in the folded bytes, so the test may pass without a secret, but never misses a
trigger. All triggers are searched for at once, by the engine that matches the patterns of schemas: about 1 µs
for 200 bytes. In large bytes each kind of trigger is searched for on its own: a few literals of one kind take
the engine a tenth of the time of a mixture. A trigger may also be a pattern of that engine, written for
folded bytes, where each byte is one character.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import groupby, islice
from typing import Final

from portbook.schema.engine import LateValidator, Validator, compile_official
from portbook.text.slotted import slotted

__all__ = [
    "DROPPED",
    "LARGE",
    "LONG_RUN",
    "RUN",
    "Prefilter",
    "UnfoldedPrefilter",
    "fold",
    "has_suspect_run",
    "literal",
    "searches",
]

_LOWER: Final = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", b"abcdefghijklmnopqrstuvwxyz0000000000"
)
DROPPED: Final = b"-_ "

# A run of this many token characters is suspect with a mark; a long run is suspect without one, where there
# are capital letters and digits: random text has both.
RUN: Final = 16
LONG_RUN: Final = 40
_TOKEN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_RUN: Final = b"a" * RUN
_LONG_RUN: Final = b"a" * LONG_RUN
_RUNS: Final = bytes(ord("a") if code in _TOKEN else ord(".") for code in range(256))

# The start of a long trigger is enough. A batch of this size stays below the engine's limit for one pattern.
_START: Final = 24
_BATCH: Final = 200

# From here on, a search for each kind of trigger takes less time than one for all. It compares so many
# literals at once with sixteen bytes of text; from three such searches on, a batch is as quick.
LARGE: Final = 2048
_AT_ONCE: Final = 32
_FEW: Final = 4

_SYNTAX: Final = frozenset("\\^$.*+?()[]{}|/")


def fold(data: bytes) -> str:
    """Return `data` in the folded form that triggers are searched in."""
    return data.translate(_LOWER, DROPPED).decode("latin-1")


@slotted(eq=False)
class Prefilter:
    """Passes bytes that may contain a secret."""

    triggers: tuple[Validator, ...]
    kinds: tuple[Validator, ...]
    """The same triggers, each kind on its own."""
    marks: tuple[Validator, ...]
    """What counts only where the bytes have a run."""
    passes_runs: bool
    passes_beyond_ascii: bool
    passes_all: bool
    passes_large: Callable[[bytes, str], bool] | None
    """What large bytes are tested with instead, and the text that they are."""

    @classmethod
    def of(
        cls,
        triggers: Iterable[str],
        *,
        patterns: Iterable[str] = (),
        marks: Iterable[str] = (),
        passes_runs: bool = False,
        passes_beyond_ascii: bool = False,
        passes_all: bool = False,
        passes_large: Callable[[bytes, str], bool] | None = None,
    ) -> Prefilter:
        """Return the prefilter of these triggers; `marks` of tokens are searched for as they are spelled."""
        plain = sorted({fold(trigger.encode())[:_START] for trigger in triggers})
        literals, patterns = list(map(literal, plain)), list(patterns)
        return cls(
            tuple(_any_of([*literals, *patterns])),
            (*_by_kind(literals), *_by_kind(patterns)),
            tuple(_any_of(map(literal, marks))),
            passes_runs,
            passes_beyond_ascii,
            passes_all or "" in plain,  # folding left nothing of that trigger to search for
            passes_large,
        )

    def passes(self, data: bytes, text: str | None = None) -> bool:
        """Return whether `data` may contain a secret; `text` is what it says, where that was decoded."""
        if self.passes_all or (self.passes_beyond_ascii and not data.isascii()):
            return True
        if len(data) >= LARGE:
            return self._passes_large(data, text)
        folded = data.translate(_LOWER, DROPPED).decode("latin-1")  # as `fold` does
        for triggers in self.triggers:
            accepts = triggers.accepts
            if accepts(folded):
                return True
        if not self.passes_runs or not data.translate(_RUNS).partition(_RUN)[1]:
            return False
        return has_suspect_run(data, data.decode("latin-1"), self.marks)

    def _passes_large(self, data: bytes, text: str | None) -> bool:
        if self.passes_large is not None:  # a text of Python may have half a pair of surrogates
            return self.passes_large(data, data.decode(errors="replace") if text is None else text)
        folded = fold(data)
        if any(triggers.accepts(folded) for triggers in self.kinds):
            return True
        return self.passes_runs and has_suspect_run(data, data.decode("latin-1"), self.marks)


def has_suspect_run(
    data: bytes, text: str, marks: tuple[Validator, ...], has_capitals: bool | None = None
) -> bool:
    """Return whether `data`, which is `text`, has a run that may be a token, by one of `marks`, or random."""
    # Few large bytes have what makes a run suspect; that is found in a tenth of the time of a run.
    is_marked = _finds(marks, text)
    has_capitals = _finds(_CAPITALS, text) if has_capitals is None else has_capitals
    is_mixed = has_capitals and _DIGITS.accepts(text)
    if not is_marked and not is_mixed:
        return False
    runs = data.translate(_RUNS)
    return (is_mixed and runs.find(_LONG_RUN) >= 0) or (is_marked and runs.find(_RUN) >= 0)


def searches(patterns: Iterable[str]) -> tuple[Validator, ...]:
    """Return searches for patterns in large text, each kind of them on its own."""
    return tuple(_by_kind(list(patterns)))


def _finds(some: Iterable[Validator], text: str) -> bool:
    """Return whether one of these searches finds something. A loop: a generator takes as long as a search."""
    for search in some:
        accepts = search.accepts
        if accepts(text):
            return True
    return False


def _by_kind(patterns: list[str]) -> Iterator[Validator]:
    """Yield searches for patterns: together those that begin with a letter, a digit, or the same sign.

    A few that begin with the same sign are searched for one by one: some signs are in every value, and the
    engine begins with the rarest character of a single literal.
    """
    for name, kind in groupby(sorted(patterns, key=_kind_of), _kind_of):
        alike = list(kind)
        size = _AT_ONCE if len(alike) <= 3 * _AT_ONCE else _BATCH
        if len(name) == 1 and len(alike) <= _FEW:
            size = 1
        for at in range(0, len(alike), size):
            yield _search(alike[at : at + size])


def _kind_of(pattern: str) -> str:
    first = pattern[:1]
    return "letter" if first.isalpha() else "digit" if first.isdigit() else first


def _any_of(patterns: Iterable[str]) -> Iterator[Validator]:
    """Yield validators, one of which matches wherever one of `patterns` does."""
    left = iter(patterns)
    while batch := list(islice(left, _BATCH)):
        yield _search(batch)


def _search(patterns: list[str]) -> Validator:
    """Return a validator that is compiled with its first use: few values are large, few pass the first test.

    No pattern here is the operator's own, so each is known to compile. Literals in their order are found up
    to four times as quickly as in disorder.
    """
    return LateValidator(partial(compile_official, {"pattern": "|".join(sorted(patterns))}, ""))


# In classes of at most ten characters, which the engine compares with sixteen bytes of text at once.
_CAPITALS: Final = tuple(_search([f"[{some}]"]) for some in ("A-J", "K-T", "U-Z"))
_DIGITS: Final = _search(["[0-9]"])


def literal(text: str) -> str:
    """Return the pattern that matches `text` literally."""
    return "".join(f"\\{character}" if character in _SYNTAX else character for character in text)


# The prefilter of large JSON, which leaves most of it as it is.
#
# Folding a megabyte takes longer than all searches in it. So what has one spelling is searched for as it is
# spelled, and only what stands before a sign is folded: a name means nothing elsewhere. Where there are many
# signs, everything is folded for the names. The verdict is that of `Prefilter`, or a no where that one says
# yes without need.

# Most texts have none of the signs that escapes have. Of these, all of a group have to be found; the last is
# exact, and those before it are quick to miss.
_SIGNS: Final = r"[%&+\\]"
_ESCAPES: Final = (
    (r"\\\\",),
    ("%[0-9A-Fa-f]{2}",),
    ("&#?[0-9A-Za-z]{1,32};",),
    (r"\+[-_ ]*'", r"'[-_ ]*\+[-_ ]*'"),
    (r"\+[-_ ]*\\?\"", r"\"[-_ ]*\+[-_ ]*\\?\""),
)
_SHAPES: Final = (r":\/\/[^\/]+@", "(?i-u:basic|bearer)")
_IN_CAPITALS: Final = ("PRIVATE KEY",)

# A card number: fourteen digits, or groups of them. Of every fourth character of one, three are digits in a
# row, or two beside one around a gap.
_CARD: Final = ("[0-9](?:[ -]?[0-9]){13}",)
_STRIDE: Final = 4
_KINDS: Final = bytes(
    ord("0") if code in b"0123456789" else ord("-") if code in b" -" else ord(".") for code in range(256)
)
_MAY_BE_CARD: Final = ("000", "0-00", "00-0")

# How much before a sign is folded, and how much of it has to be more than separators, spaces and quotes; the
# longest name has to fit in there.
_REACH: Final = 256
_LEAST: Final = 64
_HOLLOW: Final = DROPPED + b"\"'\\" + bytes(range(32)) + bytes(range(127, 256))

# Folding what is before one sign takes as long as folding so many bytes.
_WORTH_A_SIGN: Final = 2048


class UnfoldedPrefilter:
    """Passes large JSON that may contain a secret."""

    __slots__ = ("_detects", "_marks", "_names", "_spelled")

    def __init__(
        self, names: Iterable[str], spelled: Iterable[str], marks: Iterable[str], *, detects: bool
    ) -> None:
        """Search for patterns of folded `names`, for what is `spelled` in one way, and for escapes.

        With `detects` also for shapes of secrets and for runs with `marks`.
        """
        self._names = searches(names)
        # In bytes, as the engine counts them; half a character at the end is left out.
        starts = sorted({each.encode()[:_START].decode(errors="ignore") for each in spelled})
        self._spelled = (*searches(map(literal, starts)), *(searches(_SHAPES) if detects else ()))
        self._marks = searches(map(literal, marks))
        self._detects = detects

    def passes(self, data: bytes, text: str) -> bool:
        """Return whether `data`, which is `text`, may contain a secret."""
        if _finds(self._spelled, text) or (_HAS_SIGN.accepts(text) and _finds_escape(text)):
            return True
        before = _before_signs(data)
        if _finds(self._names, fold(data if before is None else before)):
            return True
        return self._detects and (_has_card(text) or self._has_key_or_token(data, text))

    def _has_key_or_token(self, data: bytes, text: str) -> bool:
        has_capitals = _finds(_CAPITALS, text)  # in most texts among the first characters
        if has_capitals and _finds(_SPELLED_IN_CAPITALS, text):
            return True
        return has_suspect_run(data, text, self._marks, has_capitals)


_SPELLED_IN_CAPITALS: Final = searches(_IN_CAPITALS)
_HAS_SIGN: Final = _search([_SIGNS])
_ESCAPED: Final = tuple(tuple(_search([pattern]) for pattern in group) for group in _ESCAPES)


def _finds_escape(text: str) -> bool:
    return any(all(search.accepts(text) for search in group) for group in _ESCAPED)


(_EXACT,) = searches(_CARD)
(_SAMPLED,) = searches(_MAY_BE_CARD)


def _has_card(text: str) -> bool:
    # Every fourth character of a text is taken in two thirds of the time of every fourth byte.
    some = text[::_STRIDE].encode().translate(_KINDS).decode("latin-1")
    return _SAMPLED.accepts(some) and _EXACT.accepts(text)


def _before_signs(data: bytes) -> bytes | None:
    """Return what stands before each `:` and `=`, with it; None where everything has to be folded."""
    most = len(data) // _WORTH_A_SIGN
    parts: list[bytes] = []
    for sign in (b":", b"="):
        at = data.find(sign)
        while at >= 0:
            part = data[max(0, at - _REACH) : at + 1]
            if len(parts) == most or (at > _REACH and len(part.translate(None, _HOLLOW)) < _LEAST):
                return None
            parts.append(part)
            at = data.find(sign, at + 1)
    return b".".join(parts)
