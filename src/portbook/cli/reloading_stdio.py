"""`portbook serve --stdio --reload`: changed files are taken up on the connection that the client has.

The toolsets are imported anew beside the old ones, into a second boundary. What the client sends next is
answered by that one; calls under way end in the old one, which is closed after them. Where the new one cannot
be made, the old one stays in force.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

from portbook.app.assemble import App, assemble
from portbook.cli.options import START_ERRORS
from portbook.cli.reloading_server import without_changes_since
from portbook.cli.served_lists import changed_lists, served_lists
from portbook.cli.terminal import problems_of, say
from portbook.cli.watched_files import Stamps, python_folders, stamps_of, watched_files
from portbook.doors.ndjson import NdjsonDoor
from portbook.settings import Settings
from portbook.tools.set_aside_modules import SetAsideModules
from portbook.tools.toolset import Changed

__all__ = ["ReloadingStdio"]

_POLL_S: Final = 0.25


class ReloadingStdio:
    """Keeps the newest files that can be served in force on one connection."""

    def __init__(
        self,
        app: App,
        settings: Settings,
        door: NdjsonDoor,
        load: Callable[[], Settings],
        on_new: Callable[[App], None],
    ) -> None:
        """Watch the files of `app`; `load` reads the settings again, `on_new` is told of each new app."""
        self.app = app
        """The one in force."""
        self._settings = settings
        self._door = door
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
            await asyncio.sleep(_POLL_S)
            if stamps_of(list(self._stamps)) != self._stamps:
                self._take_up()

    def _take_up(self) -> None:
        """Put the files as they are into force, or keep what is."""
        started = time.time_ns()
        folders = python_folders(self._settings)
        old_modules = SetAsideModules(folders)
        try:
            settings = self._load()
            new = assemble(
                settings, is_exposed=False, warn=lambda text: say(f"warning: {text}"), is_server=True
            )
        except (*START_ERRORS, OSError) as error:
            old_modules.put_back(folders)
            self._stamps = stamps_of(list(self._stamps))  # until the next change
            for problem in problems_of(error):
                say(f"error: {problem}")
            say("reload failed; what was served before stays in force")
            return
        for warning in new.warnings:
            say(f"warning: {warning}")
        self._settings = settings
        self._stamps = without_changes_since(started, stamps_of(watched_files(settings)))
        self._put_in_force(new)
        say("reloaded: the changed files are in force")

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
