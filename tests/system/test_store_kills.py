"""Kills: nothing acknowledged is lost, nothing runs twice."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import apsw
import pytest

from portbook.access.approval_state_and_binding import State
from portbook.clock import SystemClock
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.sqlite_store import Store
from support.counts import count, seed

pytestmark = pytest.mark.soak("store kills")


@pytest.fixture(scope="module")
def aftermath(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Counter[str]]]:
    """The store that the killed left behind, and how often each word was said of each ticket."""
    path = tmp_path_factory.mktemp("kills") / "portbook.db"
    hammered = subprocess.run(
        [
            *(sys.executable, str(Path(__file__).with_name("hammer.py"))),
            *(str(path), str(count("store kills")), str(seed() + 1)),
        ],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": str(Path(__file__).parent.parent)},
        timeout=600,
        check=True,
        text=True,
    )
    said: dict[str, Counter[str]] = defaultdict(Counter)
    for line in hammered.stdout.splitlines():
        word, approval_id = line.split()
        said[word][approval_id] += 1
    return path, said


def states(path: Path) -> dict[str, State]:
    store = Store(path)
    found = {
        ticket.id: ticket.state for ticket in ApprovalStore(store, SystemClock()).tickets(limit=sys.maxsize)
    }
    store.close()
    return found


@pytest.mark.covers("002.approval.kills")
def test_nothing_that_was_acknowledged_is_lost(aftermath: tuple[Path, dict[str, Counter[str]]]) -> None:
    path, said = aftermath
    found = states(path)
    assert said["asked"].keys() <= found.keys()
    after = {
        "approved": {State.APPROVED, State.UNKNOWN, State.DONE},
        "ran": {State.UNKNOWN, State.DONE},
        "finished": {State.DONE},
    }
    for word, expected in after.items():
        assert said[word], f"nothing was ever {word}: the test shows nothing"
        assert {found[approval_id] for approval_id in said[word]} <= expected, word


@pytest.mark.covers("002.approval.kills-once")
def test_no_ticket_ran_twice(aftermath: tuple[Path, dict[str, Counter[str]]]) -> None:
    _, said = aftermath
    assert set(said["ran"].values()) == {1}
    assert set(said["approved"].values()) == {1}


def test_what_ran_when_its_process_died_is_unknown(aftermath: tuple[Path, dict[str, Counter[str]]]) -> None:
    path, said = aftermath
    found = states(path)
    assert State.RUNNING not in found.values()
    unknown = {approval_id for approval_id, state in found.items() if state is State.UNKNOWN}
    assert unknown, "no kill came in the middle of a call: the test shows nothing"
    assert unknown.isdisjoint(said["finished"])


def test_the_file_is_whole(aftermath: tuple[Path, dict[str, Counter[str]]]) -> None:
    path, _ = aftermath
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA integrity_check").get == "ok"
    connection.close()
