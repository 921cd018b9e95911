"""Who hears of changes: whoever may read what has changed, for as long as they may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import portbook.mcp.connection
from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.audit.memory_sink import MemorySink
from portbook.errors import Reason, Refused
from portbook.mcp.list_and_resource_changes import ChangeFeed, ChangeNotification
from portbook.model import Arrival
from portbook.settings import load_settings
from portbook.stages.state import CallState
from portbook.stores.caller_keys import digest_of_key
from portbook.tools.toolset import Changed
from support.in_process_connection import handshake, params
from support.mcp_http_client import run

TOOLSET = """
from portbook import Toolset

toolset = Toolset("notes")


@toolset.resource("notes://all")
def all_notes() -> str:
    return ""


@toolset.resource("notes://day/{day}")
def note(day: str) -> str:
    return ""


@toolset.resource("other://all")
def other() -> str:
    return ""
"""

KEY = f'[[keys.allow]]\nname = "one"\nsha256 = "{digest_of_key("a key")}"\n'
DENY = '[[policy.rules]]\nname = "no"\naction = "deny"\nkinds = ["resource"]\ntools = ["notes://*"]\n'
ASK = DENY.replace('"deny"', '"ask"')
SUNDAYS = DENY + 'where = { "/day" = { const = "sunday" } }\n'
IN_SESSION = (
    '[policy]\ndefault = "deny"\n'
    '[[policy.rules]]\nname = "s"\naction = "allow"\ntools = ["*"]\nsessions = ["s1"]\n'
)


class Line:
    """A connection with a key, whose messages of the server's own are kept."""

    def __init__(self, folder: Path, config: str = "") -> None:
        self.folder = folder
        (folder / "notes.py").write_text(TOOLSET)
        self.sink = MemorySink()
        self.served: App = assemble(self._settings(config), is_exposed=False, sink=self.sink)
        self.toolset = self.served.toolsets[0]
        self.told: list[Any] = []
        arrival = Arrival("test", "test", key="a key")
        self.connection = self.served.boundary.connect(arrival, self._emit)

    def govern(self, config: str) -> None:
        self.served.govern(self._settings(config))

    def _settings(self, config: str) -> Any:
        path = self.folder / "portbook.toml"
        path.write_text(config)
        given = {"docs.enabled": False, "python.toolsets": (str(self.folder / "notes.py"),)}
        return load_settings(path, {}, {**given, "store.path": self.folder / "portbook.db"}, self.folder)

    def _emit(self, message: bytes, is_wanted: Callable[[], bool], **_: object) -> bool:
        if is_wanted():
            self.told.append(json.loads(message))
        return True

    @property
    def heard(self) -> list[str]:
        """What was told, of changes alone: the addresses of resources, and the methods of lists."""
        told = [message for message in self.told if "acknowledged" not in message["method"]]
        return [message.get("params", {}).get("uri", message["method"]) for message in told]

    async def ask(self, method: str, given: Any, id: object = 1) -> Any:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": given}
        received = self.connection.receive(json.dumps(message).encode())
        answer = received.reply() if isinstance(received, CallState) else await received.answering
        return None if answer.body is None else json.loads(answer.body)

    async def open(self, revision: str = "2025-11-25") -> Line:
        await self.ask("initialize", handshake(revision), id=0)
        return self

    def listen(self, *uris: str, id: object = 1, **wanted: Any) -> asyncio.Task[Any]:
        given = params("2026-07-28", notifications={"resourceSubscriptions": list(uris), **wanted})
        return asyncio.create_task(self.ask("subscriptions/listen", given, id))

    async def acknowledged(self, count: int = 1) -> Any:
        while sum("acknowledged" in message["method"] for message in self.told) < count:
            await asyncio.sleep(0)
        return self.told[-1]["params"]["notifications"]


async def settled() -> None:
    """Let everything run that is about to."""
    for _ in range(5):
        await asyncio.sleep(0)


# A policy, what is asked for, and what reading it answers with; None where it may be read.
POLICIES: dict[str, tuple[str, str, int | None]] = {
    "allowed": ("", "notes://all", None),
    "denied": (DENY, "notes://all", -31403),
    "denied, from a template": (DENY, "notes://day/monday", -31403),
    "denied for others": (DENY, "other://all", None),
    "to be approved": (ASK, "notes://all", -31428),
    "denied by what the template takes": (SUNDAYS, "notes://day/sunday", -31403),
    "allowed by what the template takes": (SUNDAYS, "notes://day/monday", None),
    "not for this key": (
        '[[keys.allow]]\nname = "one"\nsha256 = "{key}"\ntools = ["x"]\n',
        "notes://all",
        -32002,
    ),
    "not there": ("", "notes://nowhere", -32002),
}


@pytest.mark.covers("design.listen.governed")
@pytest.mark.parametrize("case", POLICIES)
def test_whoever_may_not_read_a_resource_cannot_subscribe_to_it(tmp_path: Path, case: str) -> None:
    config, uri, code = POLICIES[case]

    async def main() -> None:
        line = await Line(tmp_path, config.replace("{key}", digest_of_key("a key"))).open()
        read = await line.ask("resources/read", {"uri": uri})
        subscribed = await line.ask("resources/subscribe", {"uri": uri})
        line.toolset.updated(uri)
        if code is None:
            assert subscribed["result"] == {}
            assert line.heard == [uri]
        else:
            assert (read["error"]["code"], subscribed["error"]["code"]) == (code, code)
            assert read["error"]["data"]["reason"] == subscribed["error"]["data"]["reason"]
            assert line.heard == []
            assert line.sink.executions[-1]["caller"] == line.sink.executions[-2]["caller"]

    run(main())


@pytest.mark.parametrize("case", POLICIES)
def test_whoever_may_not_read_a_resource_hears_nothing_of_it_on_a_stream(tmp_path: Path, case: str) -> None:
    config, uri, code = POLICIES[case]

    async def main() -> None:
        line = Line(tmp_path, config.replace("{key}", digest_of_key("a key")))
        listening = line.listen(uri)
        agreed = await line.acknowledged()
        assert agreed == {"resourceSubscriptions": [uri] if code is None else []}
        line.toolset.updated(uri)
        await settled()
        assert line.heard == ([uri] if code is None else [])
        line.connection.close()
        await listening

    run(main())


# What is put into force while somebody listens, and what is heard of two changes then.
CHANGES: dict[str, tuple[str, list[str]]] = {
    "nothing": (KEY, ["notes://all", "notifications/tools/list_changed"]),
    "the key is revoked": (KEY.replace(digest_of_key("a key"), digest_of_key("another")), []),
    "a key is required and there is none": ("[keys]\nrequired = true\n", []),
    "the key opens other things": (KEY + 'tools = ["other://*"]\n', ["notifications/tools/list_changed"]),
    "policy denies it": (KEY + DENY, ["notifications/tools/list_changed"]),
    "policy wants an approval": (KEY + ASK, ["notifications/tools/list_changed"]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_what_may_be_heard_is_decided_when_there_is_something_to_hear(tmp_path: Path, case: str) -> None:
    config, heard = CHANGES[case]

    async def main() -> None:
        line = await Line(tmp_path, KEY).open()
        assert (await line.ask("resources/subscribe", {"uri": "notes://all"}))["result"] == {}
        line.govern(config)
        line.toolset.updated("notes://all")
        line.served.changes.publish(Changed("tool"))
        assert line.heard == heard

    run(main())


@pytest.mark.parametrize("case", CHANGES)
def test_a_stream_of_somebody_who_may_hear_nothing_more_ends(tmp_path: Path, case: str) -> None:
    config, heard = CHANGES[case]

    async def main() -> None:
        line = Line(tmp_path, KEY)
        listening = line.listen("notes://all", toolsListChanged=True)
        await line.acknowledged()
        line.govern(config)
        line.toolset.updated("notes://all")
        line.served.changes.publish(Changed("tool"))
        await settled()
        assert line.heard == heard
        assert listening.done() == (heard == [])
        line.connection.close()
        assert (await listening)["result"]["resultType"] == "complete"

    run(main())


def test_a_key_that_is_revoked_at_that_very_moment_is_refused_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        line = Line(tmp_path, KEY)
        callers = line.served.boundary._pipeline.rules.callers  # pyright: ignore[reportPrivateUsage]

        def identify(self: object, key: str | None) -> None:
            raise Refused(Reason.UNAUTHORIZED)

        monkeypatch.setattr(type(callers), "identify", identify)
        answer = await asyncio.wait_for(line.listen("notes://all"), 10)
        assert answer["error"]["code"] == -31401

    run(main())


def test_a_caller_is_looked_up_once_to_begin_a_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second look could fail, and there would be nobody left to refuse it."""

    async def main() -> None:
        line = Line(tmp_path, KEY)
        callers = line.served.boundary._pipeline.rules.callers  # pyright: ignore[reportPrivateUsage]
        once, looked = type(callers).identify, 0

        def identify(self: Any, key: str | None) -> Any:
            nonlocal looked
            looked += 1
            if looked > 1:
                raise Refused(Reason.UNAUTHORIZED)
            return once(self, key)

        monkeypatch.setattr(type(callers), "identify", identify)
        listening = line.listen("notes://all")
        assert await line.acknowledged() == {"resourceSubscriptions": ["notes://all"]}
        line.toolset.updated("notes://all")
        assert (await asyncio.wait_for(listening, 10))["result"]["resultType"] == "complete"
        assert line.heard == []

    run(main())


def test_a_stream_that_cannot_begin_leaves_nobody_behind(tmp_path: Path) -> None:
    emitted: list[bytes] = []

    def emit(message: bytes, is_wanted: Callable[[], bool], **_: object) -> bool:
        emitted.append(message)
        raise ValueError("not today")

    async def main() -> None:
        line = Line(tmp_path)
        line.connection = line.served.boundary.connect(Arrival("test", "test"), emit)
        with pytest.raises(ValueError, match="not today"):
            await line.listen("notes://all", toolsListChanged=True)
        line.toolset.updated("notes://all")
        await settled()
        assert len(emitted) == 1

    run(main())


def test_rules_of_the_session_in_which_it_was_subscribed_to_hold_for_what_is_heard(tmp_path: Path) -> None:
    async def main() -> None:
        line = await Line(tmp_path, IN_SESSION).open()
        refused = await line.ask("resources/subscribe", {"uri": "notes://all"})
        assert refused["error"]["code"] == -31403
        given = {"uri": "notes://all", "_meta": {"portbook/session_id": "s1"}}
        await line.ask("resources/subscribe", given)
        line.toolset.updated("notes://all")
        assert line.heard == ["notes://all"]

    run(main())


# --- limits


def test_a_connection_holds_a_limited_number_of_streams(tmp_path: Path) -> None:
    async def main() -> None:
        line = Line(tmp_path)
        streams = [line.listen("notes://all", id=number) for number in range(64)]
        await line.acknowledged(64)
        one_more = await line.listen("notes://all", id="more")
        assert one_more["error"]["data"]["reason"] == "TOO_MANY_STREAMS"
        line.connection.close()
        assert all("result" in answer for answer in await asyncio.gather(*streams))
        again = line.listen("notes://all", id="again")
        await line.acknowledged(65)
        line.connection.close()
        assert "result" in await again

    run(main())


@pytest.mark.parametrize("method", ["subscriptions/listen", "tools/call", "resources/read"])
def test_a_stream_counts_among_what_is_under_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(portbook.mcp.connection, "_MAX_RUNNING", 2)
    given = {"name": "x", "uri": "notes://all", "notifications": {}}

    async def main() -> None:
        line = Line(tmp_path)
        streams = [line.listen("notes://all", id=number) for number in range(2)]
        await line.acknowledged(2)
        refused = json.dumps(await line.ask(method, params("2026-07-28", **given), "more"))
        assert "TOO_MANY_IN_FLIGHT" in refused
        listed = await line.ask("tools/list", params("2026-07-28"), "quick")
        assert listed["result"]["tools"] == []
        line.connection.close()
        await asyncio.gather(*streams)

    run(main())


# --- messages


def test_whoever_listens_twice_is_told_twice_and_stops_once() -> None:
    changes = ChangeFeed()
    heard: list[Changed] = []

    def hear(change: ChangeNotification) -> None:
        heard.append(change.changed)

    stop, stop_other = changes.subscribe(hear), changes.subscribe(hear)
    changes.publish(Changed("tool"))
    assert len(heard) == 2
    stop()
    stop()
    changes.publish(Changed("prompt"))
    assert heard[2:] == [Changed("prompt")]
    stop_other()
    changes.publish(Changed("tool"))
    assert len(heard) == 3
