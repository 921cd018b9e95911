"""`MountedApp`: everything that `portbook serve --http` serves, inside an application of someone else."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

from portbook.app.assemble import assemble
from portbook.doors.http.asgi import asgi_application
from portbook.doors.http.route_table import routes_of, sessions_of
from portbook.settings import load_settings
from portbook.tools.toolset import Toolset

__all__ = ["MountedApp"]

# As long as a server of our own waits for calls whose client has left.
_GRACE_S: Final = 40.0


class MountedApp:
    """An ASGI application that serves toolsets: `/mcp`, `/rpc`, `/execute` and all the pages.

    Run it with any ASGI server, or mount it in an application. The server around it frames requests, and
    limits connections and their time; `portbook serve --http` has limits of its own for that. It closes when
    the server ends the lifespan of the application; an application that it is mounted in calls `close`.
    """

    def __init__(self, *toolsets: Toolset, config: Path | str | None = None, is_exposed: bool = True) -> None:
        """Serve `toolsets`, and what the settings file `config` says (`portbook.toml`, if there is one).

        Where it `is_exposed`, different machines can connect: calls need a key unless the settings say
        otherwise.

        Raises `BadSettings`, `BadTool`, `BadBundle` or `OSError` for what cannot be served.
        """
        file = None if config is None else Path(config)
        settings = load_settings(file, os.environ, {}, Path.cwd())
        self._app = assemble(settings, is_exposed=is_exposed, toolsets=toolsets, is_server=True)
        self._sessions = sessions_of(self._app, lambda _: None)
        routes = routes_of(self._app, has_legacy_sse=settings.legacy_sse, sessions=self._sessions)
        self._serve = asgi_application(routes)
        self._is_open = True
        self._is_started = False

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer one request, as ASGI 3 has it."""
        if not self._is_started:  # now: an event loop runs
            self._is_started = True
            self._app.start()
        if scope["type"] != "lifespan":
            await self._serve(scope, receive, send)
            return
        while (event := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{event['type']}.complete"})
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def close(self) -> None:
        """End streams, finish calls, also those whose client has left, and close the log and the store."""
        if self._is_open:
            self._is_open = False
            self._app.changes.close()
            await self._sessions.calls_ended(_GRACE_S)
            await self._sessions.cancel_calls()  # while they can still be recorded
            await self._app.close()
