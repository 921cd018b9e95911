"""Sessions at `/mcp`: what ends them, what they may cost, and who may use them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portbook.settings import load_settings
from portbook.stores.caller_keys import digest_of_key
from support.held_sessions import HERE, Held
from support.mcp_http_client import EVERYTHING, run, serving

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


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
    monkeypatch.setattr("portbook.doors.http.mcp.resumable_streams.SILENCE_S", 0.1)

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
