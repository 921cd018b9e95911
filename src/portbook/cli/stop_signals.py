"""How a server ends: at SIGINT and SIGTERM, the second time at once, or when a newer one is ready."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from typing import Protocol

from portbook.app.running_app import App
from portbook.cli.exit_codes import ExitCode
from portbook.cli.output_and_errors import say
from portbook.cli.served_lists import LISTED
from portbook.cli.stderr_queue import drain_output
from portbook.tools.toolset import Changed

__all__ = ["Door", "ReplacedDoor", "leave", "stop_on_signals"]


class Door(Protocol):
    """A transport that can be served and stopped."""

    async def serve(self) -> None:
        """Serve until the input ends or `stop` is called."""
        ...

    def stop(self) -> None:
        """Finish the calls in flight and take no more."""
        ...


def stop_on_signals(
    doors: list[Door],
    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM),
    before_exit: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Stop the doors at a signal, after `before`; a second signal ends the process, after `before_exit`."""
    loop = asyncio.get_running_loop()
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        if is_stopping:  # the second signal: the operator does not want to wait
            before_exit()
            drain_output()
            os._exit(ExitCode.INTERRUPTED)
        is_stopping = True
        say("finishing calls in flight; press Ctrl-C again to stop now")
        before()
        for door in doors:
            door.stop()

    for number in numbers:
        loop.add_signal_handler(number, stop)


class ReplacedDoor(Protocol):
    """A transport whose address a newer process has taken over."""

    def retire(self) -> None:
        """Finish the calls in flight, and those that clients are about to send."""
        ...


def leave(app: App, doors: Sequence[ReplacedDoor], *, lists_differ: bool) -> None:
    """End the calls under way, for a newer server has taken over; tell clients where its lists differ."""
    for kind in LISTED:
        if lists_differ and app.catalog.of(kind):
            app.changes.publish(Changed(kind))
    app.approvals.stop_waiting()
    app.let_tasks_end()
    for door in doors:
        door.retire()
