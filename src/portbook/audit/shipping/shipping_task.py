"""`ShippingTask`: ships records while the boundary serves, never on the way of a call.

The files of records stay the authority. What cannot be shipped stays there, is told in `/health` and in one
warning, and is tried again, less and less often; a restart goes on where this process stopped.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from portbook.audit.shipping.receiver_and_address import CannotShip, RecordReceiver

if TYPE_CHECKING:
    from portbook.audit.shipping.unshipped_records import UnshippedRecords

__all__ = ["ShippingTask"]

# How often files are looked at while there is nothing to ship.
_LOOK_S: Final = 1.0
_LONGEST_WAIT_S: Final = 60.0
# The longest time that a receiver may take for a batch.
_HELD_S: Final = 10.0
# How long the end of a server waits for the last records; the next start ships what is left.
_FLUSH_S: Final = 3.0


class ShippingTask:
    """Ships the records under one folder to one receiver."""

    def __init__(
        self,
        log_dir: Path,
        receiver: RecordReceiver,
        name: str,
        warn: Callable[[str], None],
        *,
        look_s: float = _LOOK_S,
        held_s: float = _HELD_S,
        flush_s: float = _FLUSH_S,
    ) -> None:
        """Ship to `receiver`, which `name` stands for in the name of a file."""
        self._log_dir = log_dir
        self._receiver = receiver
        self._name = name
        self._warn = warn
        self._look_s = look_s
        self._held_s = held_s
        self._flush_s = flush_s
        self._opened: UnshippedRecords | None = None
        self._running: asyncio.Task[None] | None = None
        self._is_ending = asyncio.Event()
        self._failure: str | None = None
        self._failures = 0
        self._refused = 0

    @property
    def problem(self) -> str | None:
        """Return what keeps records from being shipped, or what was refused; None if nothing did."""
        if self._failure is not None:
            return f"records are not shipped: {self._failure}"
        if self._refused:
            return f"the receiver refused {self._refused} records; they are in the files alone"
        return None

    def start(self) -> None:
        """Begin to ship. In the event loop."""
        self._running = asyncio.get_running_loop().create_task(self._run())
        self._running.add_done_callback(self._note_end)

    async def close(self) -> None:
        """Ship the last records, for a few seconds at most."""
        if self._running is None:
            return
        self._is_ending.set()
        await asyncio.wait((self._running,), timeout=self._flush_s)
        if not self._running.done():
            self._warn("not all records were shipped before the end; the next start goes on with them")
            self._running.cancel()
            await asyncio.wait((self._running,))
        await self._receiver.close()
        if self._opened is not None:
            await asyncio.to_thread(self._opened.close)

    async def _run(self) -> None:
        while True:
            wait_s = self._look_s
            is_last = self._is_ending.is_set()
            try:
                while await self._ship_next():
                    self._recover()
            except (CannotShip, OSError) as error:
                wait_s = self._fail(error)
            if is_last:
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._is_ending.wait()

    def _note_end(self, ended: asyncio.Task[None]) -> None:
        fault = None if ended.cancelled() else ended.exception()
        if fault is not None:
            self._failure = f"{type(fault).__name__}, a fault of Portbook's; restart it"
            self._warn(f"records are not shipped, and stay in their files: {self._failure}")

    async def _ship_next(self) -> bool:
        """Ship the next batch; return whether there was one.

        Raises `CannotShip` where it did not arrive, `OSError` where records cannot be read.
        """
        batch = await asyncio.to_thread(self._unshipped.next)
        if batch is None:
            return False
        try:
            async with asyncio.timeout(self._held_s):
                self._refuse(await self._receiver.send(batch.records))
        except TimeoutError:
            raise CannotShip("the receiver does not answer") from None
        await asyncio.to_thread(self._unshipped.confirm, batch)
        return True

    @property
    def _unshipped(self) -> UnshippedRecords:
        if self._opened is None:
            from portbook.audit.shipping.unshipped_records import UnshippedRecords  # late: not at the start

            self._opened = UnshippedRecords(self._log_dir, self._name)
        return self._opened

    def _fail(self, error: CannotShip | OSError) -> float:
        """Note why records cannot be shipped; return how long to wait."""
        text = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        if self._failure is None:
            self._warn(f"records are not shipped, and stay in their files: {text}")
        self._failure = text
        self._failures += 1
        asked_s = error.retry_after_s if isinstance(error, CannotShip) else 0.0
        return max(asked_s, min(self._look_s * 2 ** min(self._failures - 1, 16), _LONGEST_WAIT_S))

    def _recover(self) -> None:
        if self._failure is not None:
            self._warn("records are shipped again")
        self._failure, self._failures = None, 0

    def _refuse(self, refused: int) -> None:
        if refused and not self._refused:
            self._warn(f"the receiver refused {refused} records, which stay in their files alone")
        self._refused += refused
