"""Where messages of our own go: to the client, in order, while they are still wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Emit", "Outlet"]


class Emit(Protocol):
    """Sends a message of our own. From any thread."""

    def __call__(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        """Send `message`, if by then it is still wanted; what is not vital may be dropped."""
        ...


class Outlet:
    """One call's way to its caller. It ends with the call: what is told later goes nowhere."""

    __slots__ = ("_emit", "_let_go", "is_over", "reaches_client")

    def __init__(
        self, emit: Emit, let_go: Callable[[], None] | None = None, *, reaches_client: bool = True
    ) -> None:
        self._emit = emit
        self._let_go = let_go
        self.reaches_client = reaches_client
        """Whether what is said before the answer reaches anybody."""
        self.is_over = False

    def tell(self, message: bytes) -> None:
        """Send what the caller can do without."""
        self._emit(message, self._is_wanted)

    def send(self, message: bytes) -> None:
        """Send what the caller has to see."""
        self._emit(message, self._is_wanted, is_vital=True)

    def tell_or_send(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        """Send a message for a call inside of this one."""
        self._emit(message, is_wanted, is_vital=is_vital)

    def let_go(self) -> None:
        """Close the stream that the caller waits on, where the transport has one that can be resumed."""
        if self._let_go is not None:
            self._let_go()

    def _is_wanted(self) -> bool:
        return not self.is_over
