"""The prefilter of large JSON, which leaves most of it as it is. Pure: no I/O.

Folding a megabyte takes longer than all searches in it. So what has one spelling is searched for as it is
spelled, and only what stands before a sign is folded: a name means nothing elsewhere. Where there are many
signs, everything is folded for the names. The verdict is that of `Prefilter`, or a no where that one says yes
without need.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from portbook.redaction.prefilter import DROPPED, fold, has_suspect_run, literal, searches
from portbook.schema.engine import Validator

__all__ = ["UnfoldedPrefilter"]

# All of a group have to be found; the last is exact, and those before it are quick to miss.
_ESCAPES: Final = (
    (r"\\\\",),
    ("%[0-9A-Fa-f]{2}",),
    (r"\+[-_ ]*'", r"'[-_ ]*\+[-_ ]*'"),
    (r"\+[-_ ]*\\?\"", r"\"[-_ ]*\+[-_ ]*\\?\""),
)
_SHAPES: Final = ((r":\/\/[^\/]+@",), ("(?i-u:basic|bearer)",), ("PRIVATE KEY",))

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

    __slots__ = ("_detects", "_every", "_marks", "_names", "_spelled")

    def __init__(
        self, names: Iterable[str], spelled: Iterable[str], marks: Iterable[str], *, detects: bool
    ) -> None:
        """Search for patterns of folded `names`, for what is `spelled` in one way, and for escapes.

        With `detects` also for shapes of secrets and for runs with `marks`.
        """
        self._names = searches(names)
        self._spelled = searches(map(literal, spelled))
        groups = (*_ESCAPES, *(_SHAPES if detects else ()))
        self._every: tuple[tuple[Validator, ...], ...] = tuple(
            tuple(each for pattern in group for each in searches((pattern,))) for group in groups
        )
        self._marks = searches(map(literal, marks))
        self._detects = detects

    def passes(self, data: bytes) -> bool:
        """Return whether `data` may contain a secret."""
        text = data.decode("latin-1")
        if any(search.accepts(text) for search in self._spelled):
            return True
        if any(all(search.accepts(text) for search in group) for group in self._every):
            return True
        before = _before_signs(data)
        plain = fold(data if before is None else before)
        if any(search.accepts(plain) for search in self._names):
            return True
        return self._detects and (_has_card(data, text) or has_suspect_run(data, text, self._marks))


(_EXACT,) = searches(_CARD)
(_SAMPLED,) = searches(_MAY_BE_CARD)


def _has_card(data: bytes, text: str) -> bool:
    some = data[::_STRIDE].translate(_KINDS).decode("latin-1")
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
