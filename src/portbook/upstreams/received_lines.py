"""What a server wrote, as messages: lines that are none are told apart from answers that are broken. Pure.

What programs print beside their messages, such as a banner, is dropped. What was meant as an answer and
cannot be read fails the request that it answers.
"""

from __future__ import annotations

import re
from typing import Any, Final

from portbook.errors import Refused
from portbook.text.named_tuple import NamedTuple
from portbook.wire.lines import OVERSIZE, Frame
from portbook.wire.parsing import parse

__all__ = ["NO_MESSAGE", "UnreadableAnswer", "messages_in"]

# What the operator is told of a line that is dropped.
NO_MESSAGE: Final = "it wrote a line that is no message"

# An id in an answer that cannot be parsed, and how far from its ends it is looked for.
_ID: Final = re.compile(rb'"id"\s*:\s*([0-9]{1,15})(?![0-9.eE])')
_ENDS: Final = 200
# How a message can begin; what programs print begins otherwise, and costs no parsing.
_BEGINS: Final = (b"{", b"[")


class UnreadableAnswer(NamedTuple):
    """What was meant as an answer and cannot be read."""

    problem: str
    named: frozenset[int] = frozenset()
    """The ids that it names."""


def messages_in(frame: Frame, *, has_batches: bool) -> list[Any] | UnreadableAnswer:
    """Return the messages of one line or event; there is none in what is not a message."""
    if frame is OVERSIZE:
        return UnreadableAnswer("an answer is too large")
    if frame.lstrip()[:1] not in _BEGINS:
        return [None]
    is_meant = b'"jsonrpc"' in frame  # other lines are what programs print
    try:
        message = parse(frame)
    except Refused as refused:
        if not is_meant:
            return [None]
        problem = "; ".join(("an answer is not JSON", *(each.message for each in refused.findings)))
        return UnreadableAnswer(problem, _ids_in(frame))
    if not isinstance(message, list):
        return [message]
    if is_meant and not has_batches:
        return UnreadableAnswer("an answer is a batch, which its revision does not have")
    return message


def _ids_in(frame: bytes) -> frozenset[int]:
    ends = frame[:_ENDS] + b" " + frame[-_ENDS:]
    return frozenset(int(number) for number in _ID.findall(ends))
