"""Sessions at `/mcp`: what ends them, what they may cost, and who may use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portbook.access.callers import digest_of_key
from portbook.doors.http.mcp import live_session as mcp_live
from portbook.doors.http.mcp.sessions import Sessions
from portbook.model import Arrival
from portbook.settings import load_settings
from support.in_process_connection import handshake
from support.mcp_http_client import EVERYTHING, Client, run, serving

HERE = Arrival("http", "/mcp")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Ticks:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Held:
    """Sessions of one process over a server's store, with a clock of our own."""

    def __init__(self, client: Client) -> None:
        self.ticks = Ticks()
        self.kept = client.served.sessions
        self.warnings: list[str] = []
        self.sessions = Sessions(client.served.boundary, self.kept, self.warnings.append, self.ticks)

    async def open(self, arrival: Arrival = HERE, **capabilities: Any) -> str:
        live = self.sessions.make(arrival)
        params = {**handshake("2025-11-25"), "capabilities": capabilities}
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
        await live.connection.receive(_bytes(hello), arrival).answering
        await self.sessions.begin(live)
        return live.id


def _bytes(message: object) -> bytes:
    from portbook.canonical import json_bytes

    return json_bytes(message)


@pytest.mark.covers("design.mcp-http.delete-is-final")
def test_what_was_under_way_does_not_bring_an_ended_session_back(tmp_path: Path) -> None:
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "error"}},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "slow_compute", "arguments": {"seconds": 30, "label": "x"}},
        },
    ]

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-03-26")
            assert client.session is not None
            exchange = client.start(batch)
            while not client.sink.records or client.sink.records[-1].get("method") != "logging/setLevel":
                await asyncio.sleep(0.001)
            assert (await client.send(method="DELETE")).status == 204
            await exchange.ended()
            assert (await client.send(PING)).status == 404
            assert client.served.sessions.load(client.session) is None

    run(main())


def test_a_session_that_another_process_ended_is_over(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client, serving(tmp_path) as neighbour:
            one, other = Held(client), Held(neighbour)
            name = await one.open()
            assert other.sessions.find(name, HERE) is not None
            live = one.sessions.find(name, HERE)
            assert live is not None
            found = other.sessions.find(name, HERE)
            assert found is not None
            await other.sessions.forget(found)
            one.ticks.now += 1
            assert not one.sessions.may_listen(live, None)
            assert one.sessions.find(name, HERE) is None
            assert live.is_over

    run(main())


def test_what_another_process_was_asked_for_holds_here_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client, serving(tmp_path) as neighbour:
            one, other = Held(client), Held(neighbour)
            name = await one.open()
            live, found = one.sessions.find(name, HERE), other.sessions.find(name, HERE)
            assert live is not None
            assert found is not None
            found.connection.session.hear_from("error")
            await other.sessions.keep(found)
            one.ticks.now += 1
            assert one.sessions.find(name, HERE) is live
            assert live.connection.session.level == "error"

    run(main())


def test_a_session_in_use_is_touched_once_an_hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touched: list[str] = []

    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            name = await held.open()
            monkeypatch.setattr(held.kept, "touch", touched.append)
            for _ in range(5):
                held.ticks.now += 1000
                assert held.sessions.find(name, HERE) is not None
            assert touched == [name]

    run(main())


def test_what_cannot_be_a_name_is_not_looked_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    async def main() -> None:
        async with serving(tmp_path, **{"keys.required": True}) as client:
            held = Held(client)
            monkeypatch.setattr(held.kept, "load", looked.append)
            for name in ("", "no-such", "A" * 42, "A" * 44, "A" * 42 + "ü", "A" * 42 + "\n"):
                assert held.sessions.find(name, HERE) is None
            assert held.sessions.find("A" * 43, HERE) is None  # nor what comes without a key
            assert looked == []

    run(main())


# -- limits


def test_of_what_a_client_can_do_only_names_are_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            large = {"x": {"y": "a" * 100_000}}
            name = await held.open(
                elicitation={"form": large, "url": {}}, roots={"listChanged": True}, experimental=large
            )
            kept = held.kept.load(name)
            assert kept is not None
            assert kept.state["capabilities"] == {
                "elicitation": {"form": {}, "url": {}},
                "roots": {"listChanged": {}},
                "experimental": {"x": {}},
            }
            odd = {f"{number}" * 1000: {} for number in range(10)}
            kept = held.kept.load(await held.open(elicitation={str(n): {} for n in range(99)}, sampling=odd))
            assert kept is not None
            assert len(str(kept.state)) < 1000

    run(main())


def test_who_was_not_there_for_the_longest_time_makes_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_live, "_MAX_LIVE", 4)
    monkeypatch.setattr(mcp_live, "_MAX_OF_CALLER", 3)

    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            lives = {name: held.sessions.find(name, HERE) for name in [await held.open() for _ in range(3)]}
            first, second, third = lives
            held.sessions.find(first, HERE)
            await held.open()
            assert held.sessions.find(first, HERE) is lives[first]
            assert held.sessions.find(third, HERE) is lives[third]
            assert held.sessions.find(second, HERE) is not lives[second]  # from the store

    run(main())


def test_who_listens_is_not_pushed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_live, "_MAX_LIVE", 2)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            listening = client.start(method="GET")
            await listening.until(lambda: bool(listening.events))
            for _ in range(5):
                await Client.open(client, "2025-11-25")
            client.served.toolsets[0].disable("now_and_then")
            await listening.until(lambda: bool(listening.messages))
            client.served.toolsets[0].enable("now_and_then")
            await listening.leave()

    run(main())


def test_a_session_that_is_not_used_leaves_memory_and_comes_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            name = await held.open()
            live = held.sessions.find(name, HERE)
            held.ticks.now += 3601
            await held.open()
            again = held.sessions.find(name, HERE)
            assert again is not None
            assert again is not live

    run(main())


def test_keys_that_nobody_looks_at_are_all_the_same_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp_live, "_MAX_OF_CALLER", 3)

    async def main() -> None:
        async with serving(tmp_path) as client:
            held = Held(client)
            for number in range(6):
                await held.open(HERE._replace(key=f"made up {number}"))
            assert len(held.sessions._live) == 3

    run(main())


# -- keys


def _keys(folder: Path, *names: str) -> Path:
    path = folder / "portbook.toml"
    rows = (f'[[keys.allow]]\nname = "{name}"\nsha256 = "{digest_of_key(name)}"\n' for name in names)
    path.write_text("[keys]\nrequired = true\n" + "".join(rows))
    return path


@pytest.mark.covers("design.mcp-http.revoked")
def test_who_listens_with_a_key_that_is_revoked_hears_nothing_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is looked at again when there is something to say, the sign of life included.
    monkeypatch.setattr("portbook.doors.http.mcp.resumable_stream._SILENCE_S", 0.1)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=_keys(tmp_path, "one", "two")) as client:
            toolset, streams = client.served.toolsets[0], {}
            for key in ("one", "two"):
                client.key = key
                await client.open("2025-11-25")
                streams[key] = stream = client.start(method="GET")
                await stream.until(lambda stream=stream: bool(stream.events))
            given = {"docs.enabled": False, "python.toolsets": (str(EVERYTHING),)}
            settings = load_settings(_keys(tmp_path, "two"), {}, given, tmp_path)
            client.served.govern(settings)
            toolset.disable("now_and_then")
            await streams["two"].until(lambda: bool(streams["two"].messages))
            await streams["one"].ended()
            assert streams["one"].messages == []
            toolset.enable("now_and_then")
            await streams["two"].leave()

    run(main())
