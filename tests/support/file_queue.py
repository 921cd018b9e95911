"""Runs files of tests side by side: each process takes the next of a queue, and collects nothing else.

One file is taken at a time; those of a package share what lasts for it, a browser for instance, and are
taken together.

With xdist, each process collects everything before it begins, and reports each test to a process that only
counts. Of a whole run that was a tenth of the processor time, and it grew with the number of processes. Here
`--processes 4` starts four runs of pytest with the same options and `--queue FOLDER`. What they print is kept
until they end; a run that failed is shown whole. Whoever chooses tests runs them with xdist, or alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from support import processor_times
from support.longest_first import place_of

__all__ = ["files_of_tests", "folder_in_memory", "taken_together"]

_PROGRESS_S: Final = 30.0
_POLL_S: Final = 0.2
_GRACE_S: Final = 20.0
_SHOWN: Final = ("failed", "passed", "skipped", "error")

# Linux has a file system in memory there. A whole run writes some hundreds of megabytes.
_MEMORY: Final = Path("/dev/shm")
_ROOM: Final = 4 << 30


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, metavar="N", help="run all files in so many processes")
    parser.addoption("--queue", type=Path, metavar="FOLDER", help="take files from there (by --processes)")


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    processes: int | None = config.getoption("--processes")
    if processes is None or config.getoption("--queue") is not None:
        return None
    chosen = (config.option.keyword, config.option.markexpr, config.option.collectonly)
    if config.args_source is config.ArgsSource.ARGS or any(chosen):
        raise pytest.UsageError("--processes runs everything; choose tests without it")
    return _run(config, processes)


def pytest_configure(config: pytest.Config) -> None:
    queue: Path | None = config.getoption("--queue")
    if queue is not None:
        config.pluginmanager.register(_QueuedFiles(queue))


def files_of_tests(root: Path) -> list[Path]:
    """The files of tests below a folder, those that take longest first."""
    return sorted(sorted(path for path in root.rglob("test_*.py") if path.is_file()), key=place_of)


def taken_together(files: Iterable[Path]) -> list[list[Path]]:
    """Bring the files of each package together, at the place of the first of them."""
    found: dict[Path, list[Path]] = {}
    for file in files:
        is_of_package = (file.parent / "__init__.py").exists()
        found.setdefault(file.parent if is_of_package else file, []).append(file)
    return list(found.values())


# In the processes that run tests.


class _AnyFile:
    """Stands for the next test where nobody knows yet which: what lasts for the whole run is kept for it."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[pytest.Session]:
        return [self._session]


class _QueuedFiles:
    """Makes a run of pytest take files of the queue until there are none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._taken_together = [line.split("\t") for line in (folder / "files").read_text().splitlines()]
        self._modules: dict[str, pytest.Item | pytest.Collector] = {}
        self._folders: dict[pytest.Directory, pytest.CollectReport] = {}
        self._counted: Counter[str] = Counter()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """Find the files, and import none: each is collected when it is taken."""
        files = [file for together in self._taken_together for file in together]
        found = session.perform_collect(files, genitems=False)
        self._modules = {str(node.path): node for node in found}
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> pytest.CollectReport | None:
        """Go through a folder once: for each file of it that is named, pytest would do so anew."""
        if not isinstance(collector, pytest.Directory):
            return None
        if collector not in self._folders:
            runner: Any = collector.config.pluginmanager.get_plugin("runner")
            self._folders[collector] = runner.pytest_make_collect_report(collector)
        return self._folders[collector]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = self._collected(session)
        while items:
            for item, after in zip(items, [*items[1:], _AnyFile(session)], strict=True):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)
            items = self._collected(session)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            is_error = report.outcome == "failed" and report.when != "call"
            self._counted["error" if is_error else report.outcome] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._counted["error"] += 1

    def pytest_sessionfinish(self) -> None:
        """Say what came of it; who does not has died."""
        (self._folder / f"{os.getpid()}.counts").write_text(json.dumps(self._counted))

    def _collected(self, session: pytest.Session) -> list[pytest.Item]:
        """Return the tests of the next files that have any; none where every file was taken."""
        while files := self._next():
            items = [item for file in files for item in session.genitems(self._modules[file])]
            session.config.hook.pytest_collection_modifyitems(
                session=session, config=session.config, items=items
            )
            session.testscollected += len(items)
            if items:
                return items
        return []

    def _next(self) -> list[str]:
        with (self._folder / "taken").open("a+b") as taken:
            fcntl.flock(taken, fcntl.LOCK_EX)
            place = taken.seek(0, os.SEEK_END)  # a byte for each line that was taken
            if place >= len(self._taken_together):
                return []
            taken.write(b".")
            return self._taken_together[place]


# In the process that starts them.


def _run(config: pytest.Config, count: int) -> int:
    """Run all files in so many processes; return the exit code of the whole."""
    memory = folder_in_memory()
    for number in (signal.SIGTERM, signal.SIGHUP):  # before there is anything to leave behind
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, _stop)
    # A short name: the path of a Unix socket has room for a hundred characters. What a killed test
    # left behind may still write to it.
    with tempfile.TemporaryDirectory(prefix="pb-", dir=memory, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o711)  # PostgreSQL runs as a different user where this one is root
        environment = {**os.environ, "TMPDIR": name} if memory else {**os.environ}
        pieces = taken_together(files_of_tests(config.rootpath / "tests"))
        (folder / "files").write_text("".join("\t".join(map(str, files)) + "\n" for files in pieces))
        (folder / "taken").touch()
        options = list(_without(config.invocation_params.args, "--processes"))
        command = [sys.executable, "-m", "pytest", *options, f"--queue={name}"]
        began = time.monotonic()
        logs = [folder / f"{number}.log" for number in range(count)]
        running: list[subprocess.Popen[bytes]] = []
        is_interrupted = False
        try:
            running.extend(_started(command, config.rootpath, environment, log) for log in logs)
            _wait(running, folder / "taken", len(pieces))
        except KeyboardInterrupt:
            is_interrupted = True
        finally:
            _end(running)
        counted: Counter[str] = Counter()
        code = pytest.ExitCode.OK
        for each, log in zip(running, logs, strict=False):  # fewer where it was stopped at once
            counts = folder / f"{each.pid}.counts"
            if counts.exists():
                counted.update(json.loads(counts.read_text()))
            # One that found every file taken ran no tests.
            is_good = each.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            if not is_good or not counts.exists():
                how = "ended before its time" if is_good else f"ended with {each.returncode}"
                print(log.read_text(errors="replace"), f"-- {how}", sep="\n", flush=True)
                code = pytest.ExitCode.TESTS_FAILED
        if times := processor_times.of_all(folder):
            print("processor time", *processor_times.lines(times), sep="\n")
        said = ", ".join(f"{counted[outcome]} {outcome}" for outcome in _SHOWN if counted[outcome])
        print(f"{said or 'no tests'} in {time.monotonic() - began:.0f} s, {count} processes", flush=True)
        if is_interrupted:
            return pytest.ExitCode.INTERRUPTED
        return code if code or counted else pytest.ExitCode.NO_TESTS_COLLECTED


def _without(arguments: Sequence[str], option: str) -> Iterator[str]:
    """Yield arguments without an option and its value, in either spelling."""
    left = iter(arguments)
    for argument in left:
        if argument == option:
            next(left, None)
        elif not argument.startswith(f"{option}="):
            yield argument


def folder_in_memory() -> Path | None:
    """Return where the files of tests take less time than on a disk; None where there is no such place.

    Tests write thousands of small files and databases: on a disk, a run takes a tenth more processor time.
    """
    if os.environ.get("TMPDIR") or not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ROOM:
        return None
    try:
        with tempfile.TemporaryDirectory(dir=_MEMORY) as name:
            program = Path(name) / "program"
            program.write_text("#!/bin/sh\n")
            program.chmod(0o700)
            subprocess.run([program], check=True)
    except (OSError, subprocess.CalledProcessError):  # nothing can be written or started there
        return None
    return _MEMORY


def _started(
    command: Sequence[str], folder: Path, environment: dict[str, str], log: Path
) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT)


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """End what still runs: a Ctrl-C of a terminal has reached it already, any other has not."""
    for each in running:
        if each.poll() is None:
            each.send_signal(signal.SIGINT)
    deadline = time.monotonic() + _GRACE_S
    for each in running:
        try:
            each.wait(max(0.0, deadline - time.monotonic()))
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            each.kill()
            each.wait()


def _wait(running: Sequence[subprocess.Popen[bytes]], taken: Path, pieces: int) -> None:
    told = time.monotonic()
    while any(each.poll() is None for each in running):
        time.sleep(_POLL_S)
        if time.monotonic() - told >= _PROGRESS_S:
            told = time.monotonic()
            print(f"{taken.stat().st_size} of {pieces} pieces begun", flush=True)
