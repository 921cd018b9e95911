"""Clients that never finish a handshake: they have a place and a deadline like all others, and give way."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import uvloop

from portbook.doors.http.server.connection_limits_deadlines_and_overload import ConnectionLimits
from portbook.doors.http.server.http_server_and_shutdown import ServerOptions
from portbook.doors.http.server.tls import ServerCertificate
from support.bad_clients import BEHAVIOURS, HEAD, LIVEZ, World
from support.certificates import make_certificate
from support.http_listener import PATIENCE_S, SHORT, Listener, Peer, listening


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("tls")
    make_certificate(made)
    return made


def play(
    folder: Path,
    main: Callable[[Listener, ssl.SSLContext], Coroutine[Any, Any, None]],
    run: Callable[[Coroutine[Any, Any, None]], None] = uvloop.run,
    **options: Any,
) -> None:
    async def scene() -> None:
        server = ServerCertificate(folder / "cert.pem", folder / "key.pem").context
        chosen = replace(ServerOptions(deadlines=SHORT, tls=server), **options)
        async with listening(World().routes(), chosen) as listener:
            await main(listener, ssl.create_default_context(cafile=folder / "cert.pem"))

    run(scene())


async def ask(listener: Listener, client: ssl.SSLContext) -> bytes:
    """Return the answer to a request over TLS."""
    reader, writer = await asyncio.open_connection(*listener.address, ssl=client, server_hostname="localhost")
    writer.write(LIVEZ)
    answer = await asyncio.wait_for(reader.read(), PATIENCE_S)
    writer.close()
    return answer


def first_flight(client: ssl.SSLContext) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """Begin a handshake: return the client's side of it, what came, and what is to be sent."""
    came, goes = ssl.MemoryBIO(), ssl.MemoryBIO()
    side = client.wrap_bio(came, goes, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        side.do_handshake()
    return side, came, goes


@pytest.mark.covers("design.http-server.tls-deadlines")
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
@pytest.mark.parametrize("part", ["nothing", "half a greeting", "a greeting", "no TLS"])
def test_a_client_without_its_handshake_keeps_no_connection(folder: Path, part: str, behaviour: str) -> None:
    async def main(listener: Listener, client: ssl.SSLContext) -> None:
        greeting = first_flight(client)[2].read()
        sent = {"nothing": b"", "half a greeting": greeting[:50], "a greeting": greeting, "no TLS": LIVEZ}
        peer = await listener.connect()
        await listener.settle(lambda: listener.server.connections == 1)  # before a byte has come
        await peer.send(sent[part])
        behaving = asyncio.ensure_future(BEHAVIOURS[behaviour](peer))
        assert (await ask(listener, client)).endswith(b"alive")
        await listener.settle(lambda: listener.server.connections == 0)
        behaving.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await behaving
        if behaviour in ("silent", "slow"):
            assert b"HTTP" not in await peer.rest()

    play(folder, main)


def test_clients_without_a_handshake_give_way_to_others(folder: Path) -> None:
    async def main(listener: Listener, client: ssl.SSLContext) -> None:
        silent = [await listener.connect() for _ in range(20)]
        assert (await ask(listener, client)).endswith(b"alive")
        assert listener.server.connections <= 5
        assert await silent[0].rest() == b""

    long = replace(SHORT, first_byte_s=60, head_s=60)
    play(folder, main, limits=ConnectionLimits(most=4, reserve=1), deadlines=long)


@pytest.mark.parametrize("run", [uvloop.run, asyncio.run])
def test_a_request_in_one_piece_with_the_end_of_the_handshake_is_answered_over_tls(
    folder: Path, run: Callable[[Coroutine[Any, Any, None]], None]
) -> None:
    async def main(listener: Listener, client: ssl.SSLContext) -> None:
        side, came, goes = first_flight(client)
        peer = await listener.connect()
        await peer.send(goes.read())
        await _shake(side, came, peer)
        side.write(b"GET /livez" + HEAD + b"\r\n")
        await peer.send(goes.read())  # the end of the handshake, and a request
        answer = b""
        while b"alive" not in answer:
            came.write(await asyncio.wait_for(peer.reader.read(65_536), PATIENCE_S))
            with contextlib.suppress(ssl.SSLWantReadError):
                answer += side.read(65_536)
        assert answer.startswith(b"HTTP/1.1 200 ")

    play(folder, main, run)


async def _shake(side: ssl.SSLObject, came: ssl.MemoryBIO, peer: Peer) -> None:
    """Finish a handshake, and keep what is to be sent."""
    while True:
        came.write(await asyncio.wait_for(peer.reader.read(65_536), PATIENCE_S))
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
            return
