"""The supervisor with workers that say and do what a test wants, at the moment that it wants."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from portbook.cli import worker_supervisor
from portbook.cli.worker_process import Command
from portbook.cli.worker_supervisor import WorkerSupervisor

READY: dict[str, Any] = {"served": "1 tool", "lists": {}, "policy": "p"}


class ScriptedWorker:
    """A worker without a process; what it does when it is heard is what `does` says."""

    def __init__(self, number: int, seat: int | None, does: Callable[[ScriptedWorker], None]) -> None:
        self.number = number
        self.seat = seat
        self.ready: Any = None
        self.problems: dict[str, str] = {}
        self.shown: object = None
        self.link, self._theirs = socket.socketpair()
        self._theirs.send(b"x")  # readable at all times: no test waits
        self.has_hung_up = False
        self.served_s = 0.0
        self.returncode: int | None = None
        self.told: list[str] = []
        self.says: list[Any] = []
        self._does = does

    @property
    def process(self) -> ScriptedWorker:
        return self

    @property
    def has_ended(self) -> bool:
        return self.returncode is not None

    def note_ready(self, told: Any) -> None:
        self.ready = told

    def tell(self, message: Mapping[str, Any]) -> None:
        self.told += [message["do"]] if "do" in message else []

    def flush(self) -> None:
        """Nothing waits."""

    def heard(self) -> Iterator[Any]:
        if not self.has_ended:
            self._does(self)
        said, self.says = self.says, []
        yield from said

    def close(self) -> None:
        self.link.close()
        self._theirs.close()


class Script:
    """What the workers do, and which there were."""

    def __init__(self) -> None:
        self.started: list[ScriptedWorker] = []
        self.invited: list[str] = []
        self.is_reloading = False
        self._is_stopping = False
        self.does: Callable[[ScriptedWorker], None] = becomes_ready
        self.may_start: Callable[[int], bool] = lambda _: True

    def start(self, _: Sequence[str], number: int, *, seat: int | None, **rest: Any) -> ScriptedWorker:
        del rest
        if not self.may_start(number):
            raise OSError(11, "Resource temporarily unavailable")
        self.started.append(ScriptedWorker(number, seat, self.does))
        return self.started[-1]

    def stop(self) -> None:
        """Send SIGTERM, once: a second one would end all at once."""
        if not self._is_stopping:
            self._is_stopping = True
            signal.raise_signal(signal.SIGTERM)

    def run(self, count: int) -> int:
        listener = socket.socket()
        with listener:
            return WorkerSupervisor(
                listener.fileno(), ["x"], count, on_ready=self.invited.append, on_stop=listener.close
            ).run()


def becomes_ready(worker: ScriptedWorker) -> None:
    """Be ready at once, and end when told to."""
    if worker.told:
        worker.returncode = 0
    elif worker.ready is None:
        worker.says.append({"ready": READY})


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    made = Script()
    monkeypatch.setattr(worker_supervisor, "WorkerProcess", made.start)
    monkeypatch.setattr(worker_supervisor, "_FIRST_PAUSE_S", 0.0)
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield made
    for number, handler in before.items():
        signal.signal(number, handler)
    for each in made.started:
        each.close()


def test_a_worker_that_is_ready_after_the_signal_to_stop_is_waited_for_and_nobody_is_invited(
    script: Script,
) -> None:
    def does(worker: ScriptedWorker) -> None:
        if worker.number == 1:
            becomes_ready(worker)
        elif worker.ready is not None:
            worker.returncode = 0
        elif worker.told:
            worker.says.append({"ready": READY})
        else:
            script.stop()

    script.does = does
    assert script.run(2) == 0
    assert script.invited == []
    assert [worker.told for worker in script.started] == [[Command.STOP], [Command.STOP]]


def test_a_worker_that_ends_soon_is_started_again_however_often_that_happens(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = 1100  # a pause that is doubled as often is more than a number can hold

    def does(worker: ScriptedWorker) -> None:
        if worker.number == 1 or worker.told or worker.ready is None:
            becomes_ready(worker)
        elif len(script.started) > wanted:
            script.stop()
        else:
            worker.returncode = 1

    script.does = does
    assert script.run(2) == 0
    assert capsys.readouterr().err.count("starting it again") == wanted - 1


def reloading(script: Script, until: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Send SIGHUP to two workers that are ready, and SIGTERM once these words were said; return what was."""
    said: list[str] = []

    def does(worker: ScriptedWorker) -> None:
        said.append(capsys.readouterr().err)
        is_over = until in "".join(said)
        if is_over:
            script.stop()
        elif script.invited and not script.is_reloading:
            script.is_reloading = True
            signal.raise_signal(signal.SIGHUP)
        before(worker)

    before, script.does = script.does, does
    code = script.run(2)
    return code, "".join([*said, capsys.readouterr().err])


def test_a_worker_whose_successor_cannot_be_started_is_tried_again_and_the_reload_lasts_until_then(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    refused: list[int] = []

    def may_start(number: int) -> bool:
        if not script.is_reloading or refused:
            return True
        refused.append(number)
        return False

    script.may_start = may_start
    _, said = reloading(script, "every worker is new", capsys)
    assert refused == [1]
    assert [worker.number for worker in script.started] == [1, 2, 1, 2]
    assert said.index("worker 1 cannot be started") < said.index("reloaded: every worker is new")
    assert "reload failed" not in said


def test_a_reload_that_fails_half_way_names_the_workers_that_differ(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    def does(worker: ScriptedWorker) -> None:
        if worker.number == 2 and worker in script.started[2:]:
            worker.returncode = 9
        else:
            becomes_ready(worker)

    script.does = does
    _, said = reloading(script, "reload failed", capsys)
    assert "reload failed; of the workers, 1 is new and 2 is from before; send SIGHUP" in said
    assert "every worker is new" not in said
    assert "stay in force" not in said


def test_a_signal_to_reload_while_the_first_worker_starts_is_heeded(
    script: Script, capsys: pytest.CaptureFixture[str]
) -> None:
    def does(worker: ScriptedWorker) -> None:
        if not script.is_reloading:
            script.is_reloading = True
            signal.raise_signal(signal.SIGHUP)  # it may have read the files before they were changed
        elif len(script.started) == 3 and worker is script.started[2] and worker.ready and not worker.told:
            script.stop()
        else:
            becomes_ready(worker)

    script.does = does
    assert script.run(2) == 0
    assert [worker.number for worker in script.started] == [1, 2, 1]
    assert "reloaded: every worker is new" in capsys.readouterr().err


def test_a_worker_that_has_closed_its_link_and_does_not_end_costs_next_to_nothing(
    script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[tuple[int, float]] = []

    def select_now(readable: list[Any], _: object, __: object, seconds: float) -> tuple[list[Any], ...]:
        waits.append((len(readable), seconds))
        return [], [], []

    monkeypatch.setattr(select, "select", select_now)

    def does(worker: ScriptedWorker) -> None:
        if script.invited:
            script.stop()
        worker.has_hung_up = bool(worker.told)
        if not worker.told or len(waits) > 20:
            becomes_ready(worker)

    script.does = does
    assert script.run(1) == 0
    links, seconds = waits[15]
    assert links == 1, "only what signals wake"
    assert seconds > 0
