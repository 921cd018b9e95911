"""The link of a worker: taken once, heard from the start on, and its end is a command."""

from __future__ import annotations

import asyncio
import json
import os
import queue
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from portbook.cli.worker_process import WORKER, Command, WorkerLink, WorkerPlace
from portbook.doors.http.server.listeners_of_workers import create_tally

PATIENCE_S = 60.0


@pytest.fixture
def ends() -> Iterator[tuple[WorkerLink, socket.socket]]:
    """The link of worker 2, and the end of it that its supervisor has."""
    theirs, ours = socket.socketpair()
    link = WorkerLink(WorkerPlace(2, -1, ours.detach(), -1, -1, 0))
    yield link, theirs
    link.close()
    theirs.close()


def say(supervisor: socket.socket, message: dict[str, Any]) -> None:
    supervisor.sendall(json.dumps(message).encode() + b"\n")


def test_it_is_taken_once_and_what_the_worker_starts_does_not_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    theirs, ours = socket.socketpair()
    listener, tally = socket.socket(), create_tally(1)
    given = WorkerPlace(3, listener.fileno(), ours.detach(), tally, 0, 1)
    monkeypatch.setenv(WORKER, ",".join(map(str, given)))
    spoken: list[str] = []
    monkeypatch.setattr("portbook.cli.worker_process.speak_as", spoken.append)
    link = WorkerLink.of_environment()
    assert link is not None
    assert (link.place, link.tells_doubts, spoken) == (given, True, ["worker 3"])
    assert not any(os.get_inheritable(each) for each in (given.listener, given.link, given.tally))
    assert WORKER not in os.environ
    assert WorkerLink.of_environment() is None
    link.tally().set(1)
    link.tell_ready("1 tool", {"tool": "a"}, "p")
    with theirs, listener:
        heard = json.loads(theirs.recv(1000))
        link.close()
    assert heard == {"ready": {"served": "1 tool", "lists": {"tool": "a"}, "policy": "p"}}
    os.close(tally)


def test_before_it_serves_a_command_ends_the_worker(
    ends: tuple[WorkerLink, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    link, supervisor = ends
    killed: queue.Queue[tuple[int, int]] = queue.Queue()
    monkeypatch.setattr(os, "kill", lambda *sent: killed.put(sent))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    link.start()
    say(supervisor, {"do": Command.STOP})
    assert killed.get(timeout=PATIENCE_S) == (os.getpid(), signal.SIGTERM)
    supervisor.close()
    assert killed.get(timeout=PATIENCE_S) == (os.getpid(), signal.SIGTERM)


def test_commands_and_the_end_of_the_supervisor_are_heeded_in_the_loop(
    ends: tuple[WorkerLink, socket.socket], capsys: pytest.CaptureFixture[str]
) -> None:
    link, supervisor = ends

    async def main() -> list[str]:
        heard: asyncio.Queue[str] = asyncio.Queue()
        link.heed(heard.put_nowait)
        link.start()
        say(supervisor, {"do": Command.LEAVE})
        first = await asyncio.wait_for(heard.get(), PATIENCE_S)
        supervisor.close()
        return [first, await asyncio.wait_for(heard.get(), PATIENCE_S)]

    assert asyncio.run(main()) == [Command.LEAVE, Command.STOP]
    assert "the process that supervises the workers is gone" in capsys.readouterr().err


def test_it_tells_what_fails_when_that_changes_and_knows_what_fails_at_others(
    ends: tuple[WorkerLink, socket.socket],
) -> None:
    link, supervisor = ends
    workers: list[Any] = [
        [1, "ready", 0, {"audit": "full"}],
        [2, "ready", 0, {"store": "gone"}],
        [3, "restarting", 4, {}],
    ]
    say(supervisor, {"workers": workers})

    async def check() -> dict[str, str | None]:
        return {"store": "gone", "audit": None}

    async def main() -> Any:
        link.heed(lambda _: None)
        link.start()
        link.report(check)
        supervisor.setblocking(False)
        told = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(supervisor, 1000), PATIENCE_S)
        while not link.as_data()["each"]:
            await asyncio.sleep(0.01)
        await link.stop_reporting()
        return json.loads(told)

    assert asyncio.run(main()) == {"problems": {"store": "gone"}}
    assert link.problem() == "worker 1: audit: full", "its own it knows itself"
    assert link.as_data() == {
        "wanted": 3,
        "ready": 2,
        "each": [
            {"worker": 1, "state": "ready", "restarts": 0},
            {"worker": 2, "state": "ready", "restarts": 0},
            {"worker": 3, "state": "restarting", "restarts": 4},
        ],
    }


def test_a_warning_is_printed_here_where_nobody_else_can(
    ends: tuple[WorkerLink, socket.socket], capsys: pytest.CaptureFixture[str]
) -> None:
    link, supervisor = ends
    link.warn("first")
    assert json.loads(supervisor.recv(1000)) == {"warning": "first"}
    assert capsys.readouterr().err == ""
    supervisor.close()
    link.warn("second")
    assert capsys.readouterr().err == "portbook: warning: second\n"
