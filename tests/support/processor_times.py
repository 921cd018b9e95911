"""Says, after the tests, how much processor time each file of them took, with the processes that it started.

The time of a clock depends on what else the machine does; processor time hardly does. A process counts once
it has ended and its parent has waited for it.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from operator import itemgetter
from typing import Any, Final

import pytest

__all__ = ["ProcessorTimes"]

_SHOWN: Final = 40
_OUTPUT: Final = "processor_times"
_REST: Final = "collecting, importing, reporting"


class ProcessorTimes:
    """Adds up what the tests of each file take, in each process of the run."""

    def __init__(self) -> None:
        self._files: dict[str, float] = {}

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

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a process of xdist has added up."""
        for file, seconds in getattr(node, "workeroutput", {}).get(_OUTPUT, {}).items():
            self._add(file, seconds)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("processor time")
        terminalreporter.line(f"{sum(self._files.values()):8.1f} s in all")
        for file, seconds in sorted(self._files.items(), key=itemgetter(1), reverse=True)[:_SHOWN]:
            terminalreporter.line(f"{seconds:8.1f} s  {file}")


def _taken() -> float:
    user, system, of_children, system_of_children, _ = os.times()
    return user + system + of_children + system_of_children
