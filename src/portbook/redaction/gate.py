"""A cheap test whether bytes can hold anything to take out: most do not, and are spared the search. Pure.

The bytes are folded (ASCII letters to small ones, digits to `0`, separators dropped), and so are the
triggers. A trigger that is in the bytes is in the folded ones too, so the gate errs on one side only: it may
open for nothing, and never stays shut where a trigger stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

__all__ = ["LONG_RUN", "RUN", "Gate", "fold"]

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

# A search costs about 0.1 µs, so triggers with a common part are searched for only where that is found.
_STEMS: Final = ("key", "pass", "+", "=", "\\")


def fold(data: bytes) -> str:
    """Return `data` as triggers are searched for in it."""
    return data.translate(_LOWER, _DROPPED).decode("latin-1")


@dataclass(frozen=True, slots=True)
class Gate:
    """Opens for bytes in which there may be something to take out."""

    stems: tuple[tuple[str, tuple[str, ...]], ...]
    """Parts that triggers have in common, each with its triggers."""
    in_runs: tuple[str, ...]
    """Triggers that count only where there is a run."""
    opens_for_runs: bool
    opens_beyond_ascii: bool
    is_open: bool

    @classmethod
    def of(
        cls,
        triggers: Iterable[str],
        *,
        in_runs: Iterable[str] = (),
        opens_for_runs: bool = False,
        opens_beyond_ascii: bool = False,
        is_open: bool = False,
    ) -> Gate:
        """Return the gate of these triggers."""
        stems: dict[str, list[str]] = {}
        taken: list[str] = []
        plain = {fold(trigger.encode()) for trigger in triggers}
        for trigger in sorted(plain, key=lambda each: (len(each), each)):
            if not any(shorter in trigger for shorter in taken):
                taken.append(trigger)
                stems.setdefault(next((stem for stem in _STEMS if stem in trigger), trigger), []).append(
                    trigger
                )
        return cls(
            tuple((stem, tuple(below)) for stem, below in stems.items()),
            tuple(sorted({fold(trigger.encode()) for trigger in in_runs})),
            opens_for_runs,
            opens_beyond_ascii,
            is_open or "" in taken,  # of that trigger nothing is left that could be searched for
        )

    def opens(self, data: bytes) -> bool:
        """Return whether there may be something to take out of `data`."""
        if self.is_open or (self.opens_beyond_ascii and not data.isascii()):
            return True
        text = fold(data)
        for stem, triggers in self.stems:
            if stem in text:
                for trigger in triggers:
                    if trigger in text:
                        return True
        if not self.opens_for_runs:
            return False
        runs = data.translate(_RUNS)
        if runs.find(_RUN) < 0:
            return False
        return runs.find(_LONG_RUN) >= 0 or any(trigger in text for trigger in self.in_runs)
