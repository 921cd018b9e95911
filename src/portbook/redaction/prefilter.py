"""A cheap test whether bytes can hold anything to take out: most do not, and are spared the search. Pure.

The bytes are folded (ASCII letters to small ones, digits to `0`, separators dropped), and so are the
triggers. A trigger that is in the bytes is in the folded ones too, so the gate errs on one side only: it may
open for nothing, and never stays shut where a trigger stands. All triggers are searched for at once, by the
engine that matches the patterns of schemas: for 200 bytes in about 1 µs. A trigger may be a pattern of that
engine's own, written for folded bytes, each of which is a character to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from portbook.schema.engine import Validator, compile_schema

__all__ = ["LONG_RUN", "RUN", "Prefilter", "fold", "literal"]

_LOWER: Final = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", b"abcdefghijklmnopqrstuvwxyz0000000000"
)
_DROPPED: Final = b"-_ "

# So many characters of a token without a break; more of them need no trigger to be suspect.
RUN: Final = 16
LONG_RUN: Final = 40
_TOKEN: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
_RUN: Final = b"a" * RUN
_LONG_RUN: Final = b"a" * LONG_RUN
_RUNS: Final = bytes(ord("a") if code in _TOKEN else ord(".") for code in range(256))

# Of a long trigger its start is enough; so many of them stay below what one pattern may take.
_START: Final = 24
_BATCH: Final = 200

_SYNTAX: Final = frozenset("\\^$.*+?()[]{}|/")


def fold(data: bytes) -> str:
    """Return `data` as triggers are searched for in it."""
    return data.translate(_LOWER, _DROPPED).decode("latin-1")


@dataclass(frozen=True, slots=True)
class Prefilter:
    """Opens for bytes in which there may be something to take out."""

    triggers: tuple[Validator, ...]
    in_runs: tuple[Validator, ...]
    """Triggers that count only where there is a run."""
    opens_for_runs: bool
    opens_beyond_ascii: bool
    is_open: bool

    @classmethod
    def of(
        cls,
        triggers: Iterable[str],
        *,
        patterns: Iterable[str] = (),
        in_runs: Iterable[str] = (),
        opens_for_runs: bool = False,
        opens_beyond_ascii: bool = False,
        is_open: bool = False,
    ) -> Prefilter:
        """Return the gate of these triggers."""
        plain = sorted({fold(trigger.encode())[:_START] for trigger in triggers})
        return cls(
            tuple(_any_of([*map(literal, plain), *patterns])),
            tuple(_any_of(map(literal, in_runs))),
            opens_for_runs,
            opens_beyond_ascii,
            is_open or "" in plain,  # of that trigger nothing is left that could be searched for
        )

    def opens(self, data: bytes) -> bool:
        """Return whether there may be something to take out of `data`."""
        if self.is_open or (self.opens_beyond_ascii and not data.isascii()):
            return True
        text = fold(data)
        for triggers in self.triggers:
            if triggers.allows(text):
                return True
        if not self.opens_for_runs:
            return False
        runs = data.translate(_RUNS)
        if runs.find(_RUN) < 0:
            return False
        return runs.find(_LONG_RUN) >= 0 or any(triggers.allows(text) for triggers in self.in_runs)


def _any_of(patterns: Iterable[str]) -> Iterator[Validator]:
    """Yield patterns, one of which is found in a text in which one of `patterns` is."""
    left = iter(patterns)
    while batch := list(islice(left, _BATCH)):
        yield compile_schema({"pattern": "|".join(batch)}, "")


def literal(text: str) -> str:
    """Return the pattern that finds `text`."""
    return "".join(f"\\{character}" if character in _SYNTAX else character for character in text)
