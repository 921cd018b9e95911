"""The way to the client while a call runs: notifications and requests, in order, until the call ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

__all__ = ["Emit", "Outlet"]


class Emit(Protocol):
    """Sends a notification or a request to the client. From any thread."""

    def __call__(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        """Send `message`, if it is still wanted then; one that is not vital may be dropped."""
        ...


class Outlet:
    """One call's way to its client. It ends with the call: later messages are dropped."""

    __slots__ = ("_emit", "_let_go", "is_over", "reaches_client")

    def __init__(
        self, emit: Emit, let_go: Callable[[], None] | None = None, *, reaches_client: bool = True
    ) -> None:
        self._emit = emit
        self._let_go = let_go
        self.reaches_client = reaches_client
        """Whether the client gets messages before the answer."""
        self.is_over = False

    def tell(self, message: bytes) -> None:
        """Send a message that may be dropped."""
        self._emit(message, self._is_wanted)

    def send(self, message: bytes) -> None:
        """Send a message that must arrive."""
        self._emit(message, self._is_wanted, is_vital=True)

    def tell_or_send(self, message: bytes, is_wanted: Callable[[], bool], *, is_vital: bool = False) -> None:
        """Send a message of a batch's member."""
        self._emit(message, is_wanted, is_vital=is_vital)

    def let_go(self) -> None:
        """Close the stream that the client waits on, if it is resumable."""
        if self._let_go is not None:
            self._let_go()

    def _is_wanted(self) -> bool:
        return not self.is_over
