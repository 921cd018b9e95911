"""Where `*.latest.jsonl` leads while servers run, and short commands beside them."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from support.portbook_process import HttpServer, http_server, invoke, records, run

STREAMS = ("envelope_validation", "execution")


def latest(folder: Path) -> str:
    """The file that the links of both streams lead to; it exists."""
    names = {
        (folder / "runs/mcp_server" / stream / f"{stream}.latest.jsonl").resolve(strict=True).name
        for stream in STREAMS
    }
    (name,) = names
    return name


def call_beside(folder: Path) -> None:
    assert run("call", "docs.search", "query=x", cwd=folder).code == 0


def used(server: HttpServer, folder: Path) -> str:
    """Call a server; return the newest file that is then the latest."""
    assert server.rpc(invoke("echo", {"text": "x"})).status == 200
    return latest(folder)


@pytest.mark.covers("000.log.latest-of-a-running-server")
def test_a_short_command_beside_a_server_does_not_move_the_link(tmp_path: Path) -> None:
    call_beside(tmp_path)
    before = latest(tmp_path)
    with http_server(cwd=tmp_path) as server:
        own = used(server, tmp_path)
        assert own != before
        call_beside(tmp_path)
        assert latest(tmp_path) == own
        assert used(server, tmp_path) == own
        assert len(records(tmp_path / "runs")) == 2
    assert latest(tmp_path) == own
    call_beside(tmp_path)
    assert latest(tmp_path) > own, "without a server, the latest run is meant"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_of_two_servers_the_newer_one_is_meant_while_it_runs(end: signal.Signals, tmp_path: Path) -> None:
    with http_server(cwd=tmp_path) as first:
        older = used(first, tmp_path)
        with http_server(cwd=tmp_path) as second:
            newer = used(second, tmp_path)
            assert newer > older
            call_beside(tmp_path)
            assert latest(tmp_path) == newer
            second.process.send_signal(end)
            second.process.wait(30)
        if end is signal.SIGKILL:  # which leaves no time to set the link: the next run does
            call_beside(tmp_path)
        assert latest(tmp_path) == older


def test_a_server_takes_the_link_from_one_that_was_killed(tmp_path: Path) -> None:
    with http_server(cwd=tmp_path) as first:
        older = used(first, tmp_path)
        with http_server(cwd=tmp_path) as second:
            assert used(second, tmp_path) > older
            second.process.kill()
            second.process.wait(30)
        # A server looks at its files once a second, so that records cost no more.
        assert any(used(first, tmp_path) == older for _ in range(2000))
