"""A worker as its supervisor sees it: what it tells arrives, and one that does not read holds nobody up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from portbook.cli.worker_process import WorkerProcess
from portbook.doors.http.server.listeners_of_workers import create_tally
from support.supervised_workers import wait_until

TAKEN = """\
import json, os, socket
place = os.environ["_PORTBOOK_WORKER"].split(",")
link = socket.socket(fileno=int(place[2]))
lines = link.makefile("rb")
def tell(value):
    link.sendall(json.dumps(value).encode() + b"\\n")
"""


@contextmanager
def started(*lines: str) -> Generator[WorkerProcess]:
    tally = create_tally(1)
    command = [sys.executable, "-c", "\n".join((TAKEN, *lines))]
    worker = WorkerProcess(command, 7, listener=tally, tally=tally, seat=0, tells=True)
    try:
        yield worker
    finally:
        worker.process.kill()
        worker.process.wait()
        worker.close()
        os.close(tally)


def heard(worker: WorkerProcess, count: int) -> list[Any]:
    found: list[Any] = []

    def is_all() -> bool:
        found.extend(worker.heard())
        return len(found) >= count

    wait_until(is_all, lambda: f"heard only {found}")
    return found


def test_what_it_tells_is_heard_in_order_also_after_its_end() -> None:
    with started("tell({'n': 1, 'place': place})", "tell({'n': 2})") as worker:
        wait_until(lambda: worker.has_ended, lambda: "it does not end")
        first, second = heard(worker, 2)
        assert (first["n"], second["n"]) == (1, 2)
        assert (first["place"][0], first["place"][4:]) == ("7", ["0", "1"])
        assert list(worker.heard()) == []
        assert worker.has_hung_up
        assert worker.served_s == 0
        worker.note_ready(first)
        assert (worker.served_s > 0, worker.ready) == (True, first)


def test_what_a_worker_does_not_read_yet_is_sent_later() -> None:
    size = 400_000
    reads = ("lines.readline()", "tell({})", "tell(len(lines.readline()))")
    with started(*reads) as worker:
        worker.tell({})
        heard(worker, 1)
        worker.tell({"text": "x" * size})

        def is_read() -> bool:
            worker.flush()
            return worker.has_ended

        wait_until(is_read, lambda: "it is not sent")
        assert heard(worker, 1) == [len(json.dumps({"text": "x" * size})) + 1]
