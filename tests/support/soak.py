"""What `pytest --soak` adds: it runs the tests that have a long count, and says what came of each promise."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.counts import COUNTS, count

SOAK_SECONDS = 3 * 60 * 60
"""For one test: a soak is let run; what hangs still ends before anybody's patience does."""

_PROMISE = "promise"


def promise_of(item: pytest.Item) -> str | None:
    """The row of the table that a test belongs to; every property belongs to one, marked or not."""
    mark = item.get_closest_marker("soak")
    if mark is not None:
        (name,) = mark.args
        if name not in COUNTS:
            raise pytest.UsageError(f"{item.nodeid}: there is no count named {name!r} in counts.py")
        return name
    return "properties" if item.get_closest_marker("hypothesis") else None


class Soak:
    """The part of pytest that chooses the tests of a soak and reports on them."""

    def __init__(self, report: str | None) -> None:
        self._report = report
        self._outcomes: dict[str, Counter[str]] = {name: Counter() for name in COUNTS}
        self._others: list[str] = []
        """Failures that belong to no promise: a worker that died, a file that cannot be imported."""
        self._is_whole = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept: list[pytest.Item] = []
        dropped: list[pytest.Item] = []
        for item in items:
            name = promise_of(item)
            if name is None:
                dropped.append(item)
                continue
            item.user_properties.append((_PROMISE, name))
            if item.get_closest_marker("timeout") is None:  # one of its own is part of what it shows
                item.add_marker(pytest.mark.timeout(SOAK_SECONDS))
            kept.append(item)
        config.hook.pytest_deselected(items=dropped)
        items[:] = kept

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = dict(report.user_properties).get(_PROMISE)
        if name is None:
            if report.failed:
                self._others.append(report.nodeid)
        elif report.failed or report.skipped or report.when == "call":
            self._outcomes[str(name)][report.outcome] += 1

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._others.append(report.nodeid)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        ended = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
        self._is_whole = ended and not session.shouldfail and not session.shouldstop
        if self._report is not None and not hasattr(session.config, "workerinput"):
            Path(self._report).write_text("".join(f"{line}\n" for line in self.lines()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._report is None:
            terminalreporter.section("soak")
            for line in self.lines():
                terminalreporter.write_line(line)

    def lines(self) -> list[str]:
        """One line for each promise of which something ran."""
        found = [
            f"{self._verdict(outcomes):<4}  "
            + COUNTS[name].promise.format(count=count(name), tests=outcomes.total())
            for name, outcomes in self._outcomes.items()
            if outcomes
        ]
        return found + [f"FAIL  {nodeid}" for nodeid in self._others]

    def _verdict(self, outcomes: Counter[str]) -> str:
        if outcomes["failed"]:
            return "FAIL"
        if not self._is_whole:
            return "cut"  # short: what ran was in order, and the rest never ran
        return "skip" if outcomes["skipped"] else "ok"  # in part is not the promise
