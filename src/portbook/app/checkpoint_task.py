"""`CheckpointTask`: covers the records of a boundary by checkpoints, every few seconds and at its end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from portbook.audit.journal import Journal
from portbook.clock import Clock
from portbook.stores.connection_clock_and_errors import StoreError

if TYPE_CHECKING:
    from portbook.audit.checkpoints_made_and_stored import CheckpointMaker
    from portbook.provenance.signing import Signer
    from portbook.stores.store_port import StorePort

__all__ = ["CheckpointTask"]


class CheckpointTask:
    """Runs while the boundary serves. A checkpoint that fails is a warning: the records are written."""

    def __init__(
        self,
        journal: Journal,
        store: StorePort,
        log_dir: Path,
        clock: Clock,
        signer: Callable[[], Signer | None],
        warn: Callable[[str], None],
        *,
        interval_s: float,
    ) -> None:
        """Cover what `journal` writes from now on, every `interval_s` seconds."""
        journal.collect()
        self._journal = journal
        self._store = store
        self._log_dir = log_dir
        self._clock = clock
        self._signer = signer
        self._warn = warn
        self._interval_s = interval_s
        self._made: CheckpointMaker | None = None
        self._running: asyncio.Task[None] | None = None
        self._has_warned = False

    def start(self) -> None:
        """Begin to make checkpoints. In the event loop."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Cover the last records."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait((self._running,))
        await self._cover(is_last=True)

    async def _run(self) -> None:
        await asyncio.sleep(self._interval_s)
        await self._adopt()
        while True:
            await self._cover()
            await asyncio.sleep(self._interval_s)

    async def _adopt(self) -> None:
        try:
            self._maker.adopt(await asyncio.to_thread(self._maker.left_behind))
        except OSError as error:
            self._complain(error)

    async def _cover(self, *, is_last: bool = False) -> None:
        try:
            self._maker.collect()
            covering = self._maker.cover(is_last=is_last)
            if covering is not None:
                # Shielded: what was handed to the store is written, also where this task ends meanwhile.
                await asyncio.shield(asyncio.wrap_future(covering))
                self._maker.settle(covering)
        except StoreError as error:
            self._complain(error)

    def _complain(self, error: OSError) -> None:
        if not self._has_warned:
            self._warn(f"records are not covered by checkpoints: {error}")
        self._has_warned = True

    @property
    def _maker(self) -> CheckpointMaker:
        if self._made is None:
            # Late: a start needs neither the store nor a signature.
            from portbook.audit.checkpoints_made_and_stored import CheckpointMaker, CheckpointStore

            self._made = CheckpointMaker(
                self._journal,
                CheckpointStore(self._store),
                self._log_dir,
                self._clock,
                self._signer,
                self._interval_s,
            )
        return self._made
