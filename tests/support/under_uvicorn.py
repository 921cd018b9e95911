"""Our routes as an ASGI application under uvicorn, in this process, on a free port."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from portbook.doors.http.mounted_asgi_app import Receive, Scope, Send, asgi_application
from portbook.doors.http.router import Route, Router
from portbook.net.allowed_hosts_and_origins import Hosts
from support.http_listener import PATIENCE_S, ListeningPort

# The parsers that uvicorn has.
PARSERS = ("h11", "httptools")

SECONDS = 0.3

Routes = Mapping[tuple[str, str], Route]


class Mounted(ListeningPort):
    """The application under uvicorn, and how many requests it is busy with."""

    def __init__(self, routes: Routes, address: tuple[str, int]) -> None:
        super().__init__(address)
        self.busy = 0
        self._app = asgi_application(Router(routes, Hosts(is_exposed=True)), SECONDS, SECONDS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.busy += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self.busy -= 1


@asynccontextmanager
async def under_uvicorn(routes: Routes, http: str) -> AsyncIterator[Mounted]:
    listener = socket.create_server(("127.0.0.1", 0))
    mounted = Mounted(routes, listener.getsockname())
    limits: dict[str, Any] = {"timeout_keep_alive": 1, "timeout_graceful_shutdown": 1}
    server = uvicorn.Server(uvicorn.Config(mounted, http=http, lifespan="off", log_level=60, **limits))
    serving = asyncio.create_task(server.serve([listener]))
    try:
        yield mounted
    finally:
        await mounted.leave()
        server.should_exit = True
        await asyncio.wait_for(serving, PATIENCE_S)
