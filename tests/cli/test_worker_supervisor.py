"""Workers that are killed, replaced and stopped: no call is lost or doubled, and none is left behind."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import ssl
import threading
from collections import Counter
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from support.certificates import make_certificate
from support.counts import count, seed
from support.portbook_process import run
from support.supervised_workers import (
    PATIENCE_S,
    TOOLS,
    Workers,
    children_of,
    is_running,
    wait_until,
    workers,
)

CLIENTS = 6
CALLS_APART_S = 0.01
"""Of one client: workers take seconds to start, and what is called meanwhile has to be verified."""


class Load:
    """Clients that call without a pause until they are stopped."""

    def __init__(self, served: Workers) -> None:
        self._served = served
        self._stopping = threading.Event()
        self.answered: list[str] = []
        """The calls whose answers were read."""
        self.broken: list[str] = []
        """Those whose connection broke first."""
        self.wrong: list[Any] = []
        self._threads = [threading.Thread(target=self._call, args=(name,)) for name in range(CLIENTS)]
        for thread in self._threads:
            thread.start()

    def _call(self, name: int) -> None:
        connection, number = self._connection(), 0
        while not self._stopping.is_set():
            number += 1
            entry = f"{name}-{number}"
            body = json.dumps({"tool_id": "enter", "args": {"number": entry}, "session_id": "s"})
            try:
                connection.request("POST", "/execute", body, {"content-type": "application/json"})
                response = connection.getresponse()
                text = response.read()
            except (OSError, HTTPException):
                self.broken.append(entry)
                connection.close()
                connection = self._connection()
                continue
            if response.status == 200:
                self.answered.append(entry)
            else:
                self.wrong.append((entry, response.status, text))
            self._stopping.wait(CALLS_APART_S)
            if response.will_close or number % 3 == 0:  # new connections, too
                connection.close()
                connection = self._connection()
        connection.close()

    def _connection(self) -> HTTPConnection:
        return HTTPConnection("127.0.0.1", self._served.port, timeout=PATIENCE_S)

    def goes_on(self, calls: int) -> None:
        """Return after so many further answers."""
        wanted = len(self.answered) + calls
        wait_until(lambda: len(self.answered) >= wanted, lambda: f"{len(self.answered)} of {wanted} answers")

    def stop(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


def all_ready(served: Workers) -> None:
    """Return once all workers are ready."""
    wait_until(lambda: served.health()["workers"]["ready"] == served.count, lambda: "".join(served.said))


@pytest.mark.soak("worker kills")
@pytest.mark.covers("design.workers.kills")
def test_killed_workers_are_started_again_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    chance, kills = random.Random(seed()), count("worker kills")
    with workers(tmp_path, 3) as served:
        load = Load(served)
        try:
            for number in range(2, kills + 1, 2):
                load.goes_on(20)
                for pid in chance.sample(sorted(children_of(served.process.pid)), 2):
                    os.kill(pid, signal.SIGKILL)
                served.told("ended by signal SIGKILL;", number)
                all_ready(served)
            load.goes_on(20)
        finally:
            load.stop()
        assert load.wrong == []
        entered = Counter(served.ledger())
        assert set(load.answered) <= entered.keys(), "an answer tells of what was done"
        assert max(entered.values()) == 1, "no call ran twice"
        assert entered.keys() <= {*load.answered, *load.broken}
    verified = run("audit", "verify", cwd=tmp_path)
    assert verified.code == 0, verified.out.decode() + verified.err
    assert recorded(tmp_path) >= len(load.answered)


def recorded(folder: Path) -> int:
    files = (folder / "runs/mcp_server/execution").glob("2*.jsonl")
    return sum(path.read_text().count('"mcp.tool:enter"') for path in files)


@pytest.mark.covers("design.workers.reload")
def test_a_reload_replaces_every_worker_and_no_call_is_lost(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as served:
        old = set(served.each())
        served.close()
        load = Load(served)
        try:
            load.goes_on(10)
            changed = TOOLS.replace("def who() -> int:", "def who(of: int = 1) -> int:")
            (tmp_path / "tools.py").write_text(changed)
            served.process.send_signal(signal.SIGHUP)
            served.told("reloaded: every worker is new")
            load.goes_on(10)
        finally:
            load.stop()
        assert load.wrong == []
        wait_until(lambda: not any(map(is_running, old)), lambda: "the old workers do not end")
        assert not old & set(served.each())
        assert served.call("who", of=2).status == 200, "the changed tool is served"
        # A client may be slow enough that its connection is closed for being idle; its call has not run then.
        assert sorted(served.ledger()) == sorted(load.answered)

        (tmp_path / "tools.py").write_text("toolset = (\n")
        served.process.send_signal(signal.SIGHUP)
        served.told("reload failed; the workers from before stay in force")
        assert served.call("who", of=2).status == 200
        assert sum("not valid Python" in line for line in served.said) == 1, "what is wrong is told once"

        hanging = "from pathlib import Path; Path(__file__).with_name('hangs').touch()\nwhile True: pass\n"
        (tmp_path / "tools.py").write_text(hanging)
        served.process.send_signal(signal.SIGHUP)
        wait_until((tmp_path / "hangs").exists, lambda: "it is not imported")
        assert served.call("who", of=2).status == 200
        (tmp_path / "tools.py").write_text(TOOLS)
        served.process.send_signal(signal.SIGHUP)
        served.told("reloaded: every worker is new", 2)


@pytest.mark.covers("design.workers.certificate")
def test_a_reload_takes_up_a_new_certificate(tmp_path: Path) -> None:
    make_certificate(tmp_path, "before")
    tls = '[server]\ntls = { cert = "cert.pem", key = "key.pem" }\n'
    with workers(tmp_path, 2, settings=tls) as served:
        assert subject(served.port) == b"before"
        make_certificate(tmp_path, "after")
        served.process.send_signal(signal.SIGHUP)
        served.told("reloaded: every worker is new")
        wait_until(lambda: subject(served.port) == b"after", lambda: "the old certificate is in use")


def subject(port: int) -> bytes:
    """The name in the certificate that a server shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with (
        socket.create_connection(("127.0.0.1", port), PATIENCE_S) as plain,
        context.wrap_socket(plain) as secure,
    ):
        shown = secure.getpeercert(binary_form=True)
    assert shown is not None
    return next(name for name in (b"before", b"after") if name in shown)


@pytest.mark.covers("design.workers.stop")
def test_calls_are_finished_before_the_workers_end(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as served:
        pids = list(served.each())
        answers = [in_background(served, connection, str(pid)) for pid, connection in served.each().items()]
        served.process.send_signal(signal.SIGTERM)
        served.told("finishing calls in flight")
        for pid in pids:
            served.let_go(str(pid))
        assert [answer() for answer in answers] == [200, 200]
        assert served.process.wait(PATIENCE_S) == 0
        assert not any(map(is_running, pids))
        assert sum("finishing calls" in line for line in served.said) == 1


@pytest.mark.covers("design.workers.stop-now")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_ends_all_workers_at_once(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with workers(tmp_path, 2) as served:
        pids = list(served.each())
        in_background(served, served.connection(), "never")
        served.process.send_signal(number)
        served.told("finishing calls in flight")
        served.process.send_signal(number)
        assert served.process.wait(PATIENCE_S) == code
        assert not any(map(is_running, pids))


@pytest.mark.covers("design.workers.orphans")
def test_workers_without_a_supervisor_finish_their_calls_and_end(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as served:
        pids = list(served.each())
        answer = in_background(served, served.connection(), "orphan")
        served.process.kill()
        served.told("the process that supervises the workers is gone", 2)
        served.let_go("orphan")
        assert answer() == 200
        wait_until(lambda: not any(map(is_running, pids)), lambda: "they do not end")


def in_background(served: Workers, at: HTTPConnection, name: str) -> Any:
    """Start a call of `wait`; return what waits for its status."""
    found: list[int] = []

    def call() -> None:
        try:
            found.append(served.call("wait", at, name=name).status)
        except (OSError, HTTPException):
            found.append(0)

    thread = threading.Thread(target=call)
    thread.start()
    served.started(name)

    def status() -> int:
        thread.join(PATIENCE_S)
        return found[0]

    return status


@pytest.mark.covers("design.workers.back-off")
def test_a_worker_that_cannot_start_is_tried_again_while_the_rest_serve(tmp_path: Path) -> None:
    with workers(tmp_path, 2) as served:
        (tmp_path / "broken").touch()
        victim = next(iter(served.each()))
        served.close()
        os.kill(victim, signal.SIGKILL)
        served.told("could not start and ended with exit code 3; the next attempt is in")
        found = served.health()
        assert (found["status"], found["workers"]["ready"]) == ("ok", 1)
        assert Counter(each["state"] for each in found["workers"]["each"]) == {"ready": 1, "restarting": 1}
        with (tmp_path / "portbook.toml").open("a") as file:
            file.write("[policy]\nmax_attempts = 3\n")
        (tmp_path / "broken").unlink()
        all_ready(served)
        served.told("has read a changed policy, and the others have not; send SIGHUP to reload all of them")
        (tmp_path / "broken").touch()
        for pid in served.each():
            os.kill(pid, signal.SIGKILL)
        served.told("error: no worker can be started; the last one ended with exit code 3")
        assert served.process.wait(PATIENCE_S) == 1


@pytest.mark.covers("design.workers.socket")
def test_workers_share_a_socket_at_a_path_which_is_removed_after_the_last(tmp_path: Path) -> None:
    with workers(tmp_path, 2, settings='[server]\nsocket = "s"\n') as served:
        answers = Counter(at_path(tmp_path / "s") for _ in range(8))
        assert answers == {200: 8}
        os.kill(children_of(served.process.pid)[0], signal.SIGTERM)
        served.told("starting it again")
        assert at_path(tmp_path / "s") == 200
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(PATIENCE_S) == 0
    assert not (tmp_path / "s").exists()


def at_path(path: Path) -> int:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(str(path))
        connection.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        return int(connection.makefile("rb").readline().split()[1])
