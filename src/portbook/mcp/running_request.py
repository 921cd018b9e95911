"""What a door has to do for a frame that may wait, and how it names a running request."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any

from portbook.model import JSON, Answer
from portbook.text.named_tuple import NamedTuple

__all__ = ["Cancel", "Key", "Order", "Work", "key_of"]

# Identifies a request of a connection: 1 and "1" are different ids, 1 and 1.0 are not.
Key = str | int | float

# Cancels a running request, and says whether there was one. A door does it, which knows its tasks.
Cancel = Callable[[Key], bool]


class Order(Enum):
    """When a message may be answered."""

    IN_TURN = "in turn"
    AT_ONCE = "at once"


class Work(NamedTuple):
    """What a door has to do for a frame that may wait: run a coroutine, in turn or beside the next ones.

    It steps the coroutine at once, up to its first wait.
    """

    answering: Coroutine[Any, Any, Answer]
    order: Order = Order.IN_TURN
    key: Key | None = None
    only_waits: bool = False
    """Whether it waits for what runs without it: once its client has left, it serves nobody."""


def key_of(identifier: JSON) -> Key | None:
    """Return the key of a request with this id; None where it is none that a request can have."""
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | float):
        return None
    return identifier
