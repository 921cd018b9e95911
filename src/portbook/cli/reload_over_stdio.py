"""`portbook serve --stdio --reload`: changed files are taken up on the connection that the client has.

The toolsets are imported anew beside the old ones, into a second boundary. What the client sends next is
answered by that one; calls under way end in the old one, which is closed after them. Where the new one cannot
be made, the old one stays in force. A process of its own tries that first: an import may take long, or never
end, and the client is answered meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from types import FrameType
from typing import Any, Final, NoReturn

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.cli.list_of_watched_files import (
    POLL_S,
    Stamps,
    after_failure,
    python_folders,
    stamps_of,
    watched_files,
    without_changes_since,
)
from portbook.cli.options import START_ERRORS
from portbook.cli.output_and_errors import problems_of, say
from portbook.cli.reload_trial import SlowReload, try_to_load
from portbook.cli.served_lists import changed_lists, served_lists
from portbook.doors.ndjson import NdjsonDoor
from portbook.settings import Settings
from portbook.tools.toolset import Changed
from portbook.tools.toolset_loader import SetAsideModules

__all__ = ["ReloadingStdio"]

_STOPPING: Final = (signal.SIGINT, signal.SIGTERM)


class ReloadingStdio:
    """Keeps the newest files that can be served in force on one connection."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        door: NdjsonDoor,
        command: Sequence[str],
        load: Callable[[], Settings],
        on_new: Callable[[App], None],
    ) -> None:
        """Watch the files of `app`; `command` starts a server like this one.

        `load` reads the settings again, `on_new` is told of each new app.
        """
        self.app = app
        """The one in force."""
        self._settings = settings
        self._door = door
        self._command = command
        self._load = load
        self._on_new = on_new
        self._stamps: Stamps = stamps_of(watched_files(settings))
        self._leaving: set[asyncio.Task[None]] = set()
        self._watching: asyncio.Task[None] | None = None
        # Bytecode is as old as a second: of two quick changes, it could be that of the first.
        sys.dont_write_bytecode = True

    def start(self) -> None:
        """Watch from now on."""
        self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def close(self) -> None:
        """Stop watching, and close every app but the one in force; their calls have ended."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        await asyncio.gather(*self._leaving)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(POLL_S)
            if self._has_changed():
                self._stamps = stamps_of(list(self._stamps))
                failure = await self._tried()
                if failure is None:
                    # Only what was tried is taken up: a file may have changed while its trial ended.
                    if not self._has_changed():
                        self._take_up()
                elif failure:
                    sys.stderr.write(failure)
                    self._keep()

    def _has_changed(self) -> bool:
        return stamps_of(list(self._stamps)) != self._stamps

    async def _tried(self) -> str | None:
        """Return why the files as they are cannot be loaded, None if they can.

        Nothing, and no longer waited for, where they change before it is known.
        """
        trial = asyncio.get_running_loop().create_task(try_to_load(self._command))
        slow = SlowReload()
        try:
            while not (await asyncio.wait({trial}, timeout=POLL_S))[0]:
                slow.tell_once()
                if self._has_changed():
                    return ""
            return trial.result()
        finally:
            trial.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await trial

    def _take_up(self) -> None:
        """Put the files as they are into force, or keep what is."""
        started = time.time_ns()
        folders = python_folders(self._settings)
        old_modules = SetAsideModules(folders)
        try:
            with _signals_interrupt():
                settings = self._load()
                new = assemble(
                    settings, is_exposed=False, warn=lambda text: say(f"warning: {text}"), is_server=True
                )
        except _Interrupted:
            old_modules.put_back(folders)
            return
        except (*START_ERRORS, OSError) as error:
            old_modules.put_back(folders)
            for problem in problems_of(error):
                say(f"error: {problem}")
            self._keep()
            return
        for warning in new.warnings:
            say(f"warning: {warning}")
        self._settings = settings
        self._stamps = without_changes_since(started, stamps_of(watched_files(settings)))
        self._put_in_force(new)
        say("reloaded: the changed files are in force")

    def _keep(self) -> None:
        self._stamps = after_failure(self._stamps)
        say("reload failed; what was served before stays in force")

    def _put_in_force(self, new: App) -> None:
        old, self.app = self.app, new
        changed = changed_lists(served_lists(old.catalog), served_lists(new.catalog))
        tasks_end = new.take_over(old)
        calls_end = self._door.move_to(new.boundary)
        new.start()
        self._on_new(new)
        for kind in changed:
            # Of the old one, too: streams of subscriptions hear of it, and end with it.
            old.changes.publish(Changed(kind))
            new.changes.publish(Changed(kind))
        old.changes.close()
        leaving = asyncio.get_running_loop().create_task(_close_after(old, calls_end, tasks_end))
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)


async def _close_after(old: App, *ends: Coroutine[Any, Any, None]) -> None:
    for end in ends:
        await end
    await old.close()


class _Interrupted(BaseException):
    """A signal came while toolsets were imported. No `except Exception` of theirs stops it."""


@contextlib.contextmanager
def _signals_interrupt() -> Generator[None]:
    """Let the signals that stop a server interrupt what runs in the event loop's thread.

    The loop hears of the same signal afterwards, and stops the door: it was only told, and had no turn.
    """
    before = {number: signal.signal(number, _interrupt) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    raise _Interrupted
