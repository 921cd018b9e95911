"""`portbook serve --workers N`: the process that starts the workers, and starts again those that die.

It never serves. It keeps the socket that all workers listen at, so no connection is lost when one of them
ends. The first worker starts alone: what is wrong with the settings is told once, and nothing else is started
then. SIGHUP replaces the workers one by one: each ends its calls and goes once its successor is ready.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from portbook.cli.exit_codes import ExitCode, exit_code_of_program
from portbook.cli.http_door import HttpDoor
from portbook.cli.output_and_errors import say
from portbook.cli.reload_trial_and_watched_files import ending_of
from portbook.cli.stop_and_reload_signals import FINISHING
from portbook.cli.worker_process import Command, WorkerProcess, WorkerState
from portbook.doors.http.server.listeners_of_workers import ConnectionTally, create_tally
from portbook.settings import Settings

__all__ = ["RepeatedWarnings", "WorkerSupervisor", "serve_with_workers"]

# `RepeatedWarnings`: of a warning that every worker has, the operator reads one.

# Workers that find the same thing find it within this time.
_TOGETHER_S: Final = 60.0

# How many texts are remembered; the one that was heard longest ago is forgotten first.
_MAX_TEXTS: Final = 1000


class RepeatedWarnings:
    """The warnings of the last minute, and which worker gave each of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[int, float]] = {}

    def is_new(self, text: str, worker: int) -> bool:
        """Return whether a warning is to be told: no different worker has just given the same one."""
        now = self._clock()
        first = self._heard.get(text)
        if first is not None and first[0] != worker and now - first[1] < _TOGETHER_S:
            return False
        self._heard.pop(text, None)
        self._heard[text] = (worker, now)
        if len(self._heard) > _MAX_TEXTS:
            del self._heard[next(iter(self._heard))]
        return True


_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# The longest sleep: a process that has ended without closing its link is noticed after it.
_TICK_S: Final = 1.0

# How often to look whether a worker has ended that has closed its link: nothing else would tell.
_ENDING_TICK_S: Final = 0.05

# A worker that served so long is started again at once; after one that dies sooner there is a pause, twice
# as long each time. Short: to wait for no reason costs more than a start now and then that was in vain.
_STEADY_S: Final = 1.0
_FIRST_PAUSE_S: Final = 0.25
_LONGEST_PAUSE_S: Final = 30.0
_MAX_DOUBLINGS: Final = 7

# How often in a row starting one may fail while none is ready, until the supervisor gives up.
_MAX_FAILED_STARTS: Final = 5

# How long workers have to end after a second signal.
_END_S: Final = 1.0

# Places in the tally for each worker: workers that leave after a reload keep theirs until they have ended.
_PLACES_OF_EACH: Final = 4


@dataclass(slots=True, eq=False)
class _Seat:
    """One of the workers that are wanted, whichever process is it at the moment."""

    number: int
    worker: WorkerProcess | None = None
    """The process that serves."""
    starting: WorkerProcess | None = None
    """The process that is to serve."""
    restarts: int = 0
    failures: int = 0
    """How often in a row a process has ended soon."""
    start_at: float = 0.0
    """When to start one again."""

    @property
    def state(self) -> Literal["starting", "ready", "restarting"]:
        if self.worker is not None:
            return "ready"
        return "starting" if self.starting is not None and not self.restarts else "restarting"


class WorkerSupervisor:
    """Keeps a number of workers at one socket."""

    def __init__(
        self,
        listener: int,
        command: Sequence[str],
        count: int,
        *,
        on_ready: Callable[[str], None],
        on_stop: Callable[[], None],
    ) -> None:
        """Serve the socket `listener` with `count` processes that `command` starts.

        `on_ready` is called once, when all are ready, with what they serve; `on_stop` when they are to end.
        """
        self._listener = listener
        self._command = command
        self._on_ready: Callable[[str], None] | None = on_ready
        self._on_stop = on_stop
        self._tally_descriptor = create_tally(_PLACES_OF_EACH * count)
        self._tally = ConnectionTally(self._tally_descriptor)
        self._seats = [_Seat(number) for number in range(1, count + 1)]
        self._leaving: list[WorkerProcess] = []
        self._to_replace: list[_Seat] = []
        """While a reload lasts: the workers for which no process that started after SIGHUP is ready yet."""
        self._outdated: set[WorkerProcess] = set()
        """The processes that started before SIGHUP."""
        self._warnings = RepeatedWarnings()
        self._signals: list[int] = []
        self._is_stopping = False
        self._has_served = False
        self._failed_starts = 0
        """Since a worker was ready."""
        self._code: int | None = None
        """The exit code, where it is decided before all workers have ended."""

    def run(self) -> int:
        """Supervise until a signal, or until no worker can be started; return the exit code."""
        wakeup, waker = os.pipe()
        os.set_blocking(waker, False)
        before = signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
        for number in _SIGNALS:
            # Noted, and heeded between two steps: in the midst of one, a process could be missed.
            signal.signal(number, lambda number, _: self._signals.append(number))
        try:
            while True:
                while self._signals:
                    self._heed(self._signals.pop(0))
                self._reap()
                if not self._is_stopping:
                    self._start_what_is_missing()
                elif not any(self._processes()):
                    return int(ExitCode.SUCCESS) if self._code is None else self._code
                self._show_workers()
                self._wait(wakeup)
        finally:
            signal.set_wakeup_fd(before)
            os.close(wakeup)
            os.close(waker)
            os.close(self._tally_descriptor)

    def _processes(self) -> Iterator[WorkerProcess]:
        for seat in self._seats:
            yield from (each for each in (seat.worker, seat.starting) if each is not None)
        yield from self._leaving

    def _wait(self, wakeup: int) -> None:
        """Sleep until a worker says something or ends, a signal comes, or it is time to start one."""
        due = [seat.start_at for seat in self._seats if seat.worker is None and seat.starting is None]
        left = min(due, default=float("inf")) - time.monotonic()
        workers = list(self._processes())
        links = [each.link for each in workers if not each.has_hung_up]  # the rest is readable for ever
        tick = _TICK_S if len(links) == len(workers) else _ENDING_TICK_S
        readable, _, _ = select.select([wakeup, *links], [], [], max(0.0, min(tick, left)))
        if wakeup in readable:
            os.read(wakeup, 4096)
        for worker in workers:
            worker.flush()
            for message in worker.heard():
                self._hear(worker, message)

    # -- what workers say

    def _hear(self, worker: WorkerProcess, message: Any) -> None:
        if "ready" in message:
            worker.note_ready(message["ready"])
            self._take_over(worker)
        elif "problems" in message:
            worker.problems = message["problems"]
        elif "warning" in message and self._warnings.is_new(str(message["warning"]), worker.number):
            say(f"worker {worker.number}: warning: {message['warning']}")

    def _take_over(self, new: WorkerProcess) -> None:
        seat = self._seats[new.number - 1]
        if new is not seat.starting:  # it was told to end while it started
            return
        old, seat.worker, seat.starting = seat.worker, new, None
        if self._is_stopping:  # both have been told to end
            if old is not None:
                self._leaving.append(old)
            return
        self._has_served = True
        self._failed_starts = 0
        if old is None:
            self._compare_policies(new)
        else:
            is_same = old.ready["lists"] == new.ready["lists"]
            old.tell({"do": Command.LEAVE if is_same else Command.LEAVE_CHANGED})
            self._leaving.append(old)
        if seat in self._to_replace and new not in self._outdated:
            self._to_replace.remove(seat)
            if not self._to_replace:
                self._outdated.clear()
                say("reloaded: every worker is new")
        if self._on_ready is not None and all(each.worker is not None for each in self._seats):
            tell, self._on_ready = self._on_ready, None
            tell(str(new.ready["served"]))

    def _compare_policies(self, new: WorkerProcess) -> None:
        """Tell where a worker that was started again decides by a changed file, and the others do not yet."""
        others = [seat.worker for seat in self._seats if seat.worker is not None]
        if any(each.ready["policy"] != new.ready["policy"] for each in others):
            say(
                f"warning: worker {new.number} has read a changed policy, and the others have not; "
                "send SIGHUP to reload all of them"
            )

    def _show_workers(self) -> None:
        """Tell every worker how all of them are doing, for `/health`."""
        shown = {
            "workers": [
                WorkerState(
                    seat.number, seat.state, seat.restarts, seat.worker.problems if seat.worker else {}
                )
                for seat in self._seats
            ]
        }
        for worker in self._processes():
            if worker.shown != shown:
                worker.shown = shown
                worker.tell(shown)

    # -- starting

    def _start_what_is_missing(self) -> None:
        now = time.monotonic()
        for seat in self._seats:
            is_missing = seat.worker is None and seat.starting is None
            if is_missing and seat.start_at <= now and (self._has_served or seat is self._seats[0]):
                self._start(seat, tells=not self._has_served)
        if all(seat.starting is None for seat in self._seats):
            due = (seat for seat in self._to_replace if seat.worker is not None and seat.start_at <= now)
            if (seat := next(due, None)) is not None:
                self._start(seat, tells=len(self._to_replace) == len(self._seats))

    def _start(self, seat: _Seat, *, tells: bool) -> None:
        taken = {each.seat for each in self._processes()}
        place = next((each for each in range(self._tally.places) if each not in taken), None)
        try:
            seat.starting = WorkerProcess(
                self._command,
                seat.number,
                listener=self._listener,
                tally=self._tally_descriptor,
                seat=place,
                tells=tells,
            )
        except OSError as error:
            say(f"error: worker {seat.number} cannot be started: {error.strerror or error}")
            self._postpone(seat)

    def _postpone(self, seat: _Seat) -> None:
        pause = min(_FIRST_PAUSE_S * 2 ** min(seat.failures, _MAX_DOUBLINGS), _LONGEST_PAUSE_S)
        seat.failures += 1
        seat.start_at = time.monotonic() + pause

    # -- ending

    def _reap(self) -> None:
        for worker in [each for each in self._processes() if each.has_ended]:
            for message in worker.heard():  # what it said last
                self._hear(worker, message)
            worker.close()
            if worker.seat is not None:
                self._tally.clear(worker.seat)
            if worker in self._leaving:
                self._leaving.remove(worker)
                continue
            seat = self._seats[worker.number - 1]
            if worker is seat.starting:
                seat.starting = None
                if not self._is_stopping:
                    self._tell_failed_start(seat, worker.process.returncode)
            else:
                seat.worker = None
                if not self._is_stopping:
                    self._replace(seat, worker)

    def _replace(self, seat: _Seat, dead: WorkerProcess) -> None:
        """Start a worker again that has ended without being told to."""
        say(f"worker {seat.number} ended {ending_of(dead.process.returncode)}; starting it again")
        seat.restarts += 1
        if dead.served_s >= _STEADY_S:
            seat.failures = 0
            seat.start_at = 0.0
        else:
            self._postpone(seat)

    def _tell_failed_start(self, seat: _Seat, code: int) -> None:
        if seat.worker is not None:  # a reload: what is wrong with the settings it has said itself
            if code != int(ExitCode.INVALID):
                say(f"error: the new worker {seat.number} ended {ending_of(code)} before it was ready")
            self._end_failed_reload()
            return
        self._postpone(seat)
        self._failed_starts += 1
        is_alone = all(each.worker is None for each in self._seats)
        if is_alone and (code == int(ExitCode.INVALID) or not self._has_served):
            if code != int(ExitCode.INVALID):
                say(f"error: worker {seat.number} ended {ending_of(code)} before it was ready")
            self._give_up(code)
        elif is_alone and self._failed_starts >= _MAX_FAILED_STARTS:
            say(f"error: no worker can be started; the last one ended {ending_of(code)}")
            self._give_up(code)
        else:
            say(
                f"worker {seat.number} could not start and ended {ending_of(code)}; "
                f"the next attempt is in {seat.start_at - time.monotonic():.1f} seconds"
            )

    def _end_failed_reload(self) -> None:
        """Leave the workers as they are, and tell which of them differ."""
        kept = [seat.number for seat in self._to_replace]
        new = [seat.number for seat in self._seats if seat.number not in kept]
        self._to_replace.clear()
        self._outdated.clear()
        if not new:
            say("reload failed; the workers from before stay in force")
            return
        say(
            f"reload failed; of the workers, {_listed(new)} new and {_listed(kept)} from before; "
            "send SIGHUP to reload all of them"
        )

    def _give_up(self, code: int) -> None:
        self._code = int(ExitCode.INVALID if code == int(ExitCode.INVALID) else ExitCode.FAILURE)
        self._stop()

    # -- signals

    def _heed(self, number: int) -> None:
        if number == signal.SIGHUP:
            if not self._is_stopping:
                self._reload()
        elif self._is_stopping:
            self._end_now(number)
        else:
            say(FINISHING)
            self._stop()

    def _reload(self) -> None:
        """Replace all workers; one that is to replace another already, and is not ready, read older files."""
        for seat in self._seats:
            if seat.worker is not None and seat.starting is not None:
                seat.starting.tell({"do": Command.STOP})
                self._leaving.append(seat.starting)
                seat.starting = None
        self._to_replace = list(self._seats)
        self._outdated = set(self._processes())
        say("reloading: the workers are replaced, one by one")

    def _stop(self) -> None:
        self._is_stopping = True
        self._to_replace.clear()
        self._on_ready = None  # nobody is invited to where nothing listens soon
        self._on_stop()
        for worker in self._processes():
            worker.tell({"do": Command.STOP})

    def _end_now(self, number: int) -> None:
        for worker in self._processes():
            worker.tell({"do": Command.END})
        until = time.monotonic() + _END_S
        for worker in self._processes():
            try:
                worker.process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        self._code = exit_code_of_program(-number)


def _listed(numbers: Sequence[int]) -> str:
    """Return numbers of workers, with the verb that follows them."""
    return f"{', '.join(map(str, numbers))} {'is' if len(numbers) == 1 else 'are'}"


# `portbook serve --http` with several workers: what the process does that the operator started.


def serve_with_workers(settings: Settings, count: int) -> int:
    """Serve HTTP with `count` workers until a signal; return the exit code.

    Raises `BadSettings` for settings that cannot be used, `OSError` where it cannot listen.
    """
    door = HttpDoor(settings)
    try:
        return WorkerSupervisor(
            door.descriptor,
            _command_of_this_process(),
            count,
            on_ready=lambda served: say(door.invitation(f"{served} with {count} workers")),
            on_stop=door.close_listener,
        ).run()
    finally:
        door.close()


def _command_of_this_process() -> list[str]:
    """Return the command that started this process, word for word: a worker is to be like it."""
    return [sys.executable, *sys.orig_argv[1:]]
