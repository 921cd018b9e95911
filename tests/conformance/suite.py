"""Runs the official conformance suite against a Portbook that serves `everything.py`, and counts.

The suite's own verdict is not enough: against a dead port some scenarios pass, what is skipped counts as
passed, and a suite that stops early reports nothing. So the port has to answer before and after, every
scenario has to have run, and what was skipped has to be on a list, with its reason.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from support import sdks  # noqa: E402 - found beside the tests
from support.portbook_process import http_server  # noqa: E402 - likewise

EVERYTHING = HERE / "everything.py"
SUITE = "0.2.0-alpha.12"
SUITE_SECONDS = 300


@dataclass(frozen=True)
class Selection:
    """Which scenarios to run, in whose words, and how many of them there are."""

    arguments: tuple[str, ...]
    scenarios: int
    suite: str = SUITE
    """The version of the suite."""

    @property
    def name(self) -> str:
        words = " ".join(self.arguments).replace("--", "")
        return words if self.suite == SUITE else f"{words} of {self.suite}"


SELECTIONS = (
    Selection(("--suite", "all"), 65),
    Selection(("--requirements", "2025-11-25"), 33),
    Selection(("--requirements", "2026-07-28"), 50),
    Selection(("--suite", "all", "--spec-version", "2025-03-26"), 1),
    Selection(("--suite", "all", "--spec-version", "2025-06-18"), 27),
    Selection(("--suite", "all", "--spec-version", "2025-11-25"), 33),
    Selection(("--suite", "all", "--spec-version", "2026-07-28"), 40),
    # The last that was published before the suite knew 2026-07-28.
    Selection(("--suite", "all"), 32, "0.1.16"),
)

# What may be skipped, and why.
SKIPPED = {
    "tasks-status-notifications": "the suite skips it always: it has yet to be written for listen streams",
}


@dataclass
class Counted:
    """What came of one selection."""

    selection: Selection
    scenarios: int = 0
    checks: int = 0
    problems: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        verdict = "failed" if self.problems else "passed"
        return f"{self.selection.name}: {self.scenarios} scenarios, {self.checks} checks, {verdict}"


def run_all(selections: tuple[Selection, ...] = SELECTIONS) -> Iterator[Counted]:
    """Yield what came of each selection.

    Raises `sdks.Unavailable` where the suite cannot be installed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, selection in enumerate(selections):
            modules = sdks.conformance_suite(selection.suite)
            # A server of its own for each, so that none can lean on what another left behind.
            with http_server(cwd=folder, tools=(str(EVERYTHING),)) as server:
                counted = Counted(selection)
                _require_answer(server.url, "before", counted)
                out = folder / str(number)
                port = server.url.rpartition(":")[2]
                command = [
                    modules.node.node,
                    str(modules.path("@modelcontextprotocol/conformance", "dist", "index.js")),
                    *(
                        "server",
                        "--url",
                        f"http://localhost:{port}/mcp",
                        *selection.arguments,
                        "-o",
                        str(out),
                    ),
                ]
                done = subprocess.run(
                    command, cwd=folder, capture_output=True, text=True, timeout=SUITE_SECONDS
                )
                if done.returncode:
                    counted.problems.append(f"the suite ended with {done.returncode}: {done.stdout[-2000:]}")
                _require_answer(server.url, "after", counted)
                _count(out, counted)
                yield counted


def _count(out: Path, counted: Counted) -> None:
    for path in sorted(out.rglob("checks.json")):
        counted.scenarios += 1
        for check in json.loads(path.read_text()):
            counted.checks += 1
            problem = _problem(check)
            if problem is not None:
                counted.problems.append(f"{path.parent.name}: {problem}")
    if counted.scenarios != counted.selection.scenarios:
        counted.problems.append(f"{counted.selection.scenarios} scenarios were expected")


def _problem(check: dict[str, Any]) -> str | None:
    status, name = check["status"], check["id"]
    if status in ("SUCCESS", "INFO") or (status == "SKIPPED" and name in SKIPPED):
        return None
    return f"{name}: {status}: {check.get('errorMessage', '')}"


def _require_answer(url: str, when: str, counted: Counted) -> None:
    import urllib.request

    try:
        with urllib.request.urlopen(f"{url}/livez", timeout=10) as response:
            is_there = response.status == 200
    except OSError:
        is_there = False
    if not is_there:
        counted.problems.append(f"the server did not answer {when} the suite ran")


def main() -> int:
    """Run everything; return the exit status."""
    failed = 0
    try:
        for counted in run_all():
            print(counted, flush=True)
            for problem in counted.problems:
                print(f"  {problem}")
            failed += bool(counted.problems)
    except sdks.Unavailable as unavailable:
        print(unavailable)
        return 2
    for name, reason in SKIPPED.items():
        print(f"skipped: {name}: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
