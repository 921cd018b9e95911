"""Says, after the tests, how much processor time each file of them took, with the processes that it started.

The time of a clock depends on what else the machine does; processor time hardly does. A process counts once
it has ended and its parent has waited for it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["ProcessorTimes", "lines", "of_all"]

_SHOWN: Final = 40
_OUTPUT: Final = "processor_times"
_REST: Final = "collecting, importing, reporting"
_SUFFIX: Final = ".times"


class ProcessorTimes:
    """Adds up what the tests of each file take, in each process of the run."""

    def __init__(self, queue: Path | None) -> None:
        self._files: dict[str, float] = {}
        self._queue = queue

    def _add(self, file: str, seconds: float) -> None:
        self._files[file] = self._files.get(file, 0) + seconds

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = _taken()
        try:
            return (yield)
        finally:
            self._add(item.location[0], _taken() - before)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self._add(_REST, _taken() - sum(self._files.values()))
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_OUTPUT] = self._files
        if self._queue is not None:
            (self._queue / f"{os.getpid()}{_SUFFIX}").write_text(json.dumps(self._files))

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a process of xdist has added up."""
        for file, seconds in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
            self._add(file, seconds)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor time")
        for line in lines(self._files):
            terminalreporter.line(line)


def of_all(queue: Path) -> dict[str, float]:
    """Add up what the processes of a queue have told."""
    files: dict[str, float] = {}
    for told in queue.glob(f"*{_SUFFIX}"):
        for file, seconds in json.loads(told.read_text()).items():
            files[file] = files.get(file, 0) + seconds
    return files


def lines(files: Mapping[str, float]) -> Iterator[str]:
    """Yield what to print: the sum, and the files that took most."""
    yield f"{sum(files.values()):8.1f} s in all"
    for file, seconds in sorted(files.items(), key=itemgetter(1), reverse=True)[:_SHOWN]:
        yield f"{seconds:8.1f} s  {file}"


def _taken() -> float:
    user, system, of_children, system_of_children, _ = os.times()
    return user + system + of_children + system_of_children
