"""Runs the official conformance suite against a Portbook that serves `everything.py`, and counts.

The suite's own verdict is not enough: against a dead port some scenarios pass, what is skipped counts as
passed, and a suite that stops early reports nothing. So the port has to answer before and after, every
scenario has to have run, and what was skipped has to be on a list, with its reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
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
from support.portbook_process import HttpServer, http_server  # noqa: E402 - likewise
from support.stand_in import portbook_program  # noqa: E402 - likewise

EVERYTHING = HERE / "everything.py"
SUITE = sdks.CONFORMANCE
SUITE_SECONDS = 300

# A scenario that waits in vain for five seconds, or another time of the suite's own, is tried again alone: a
# machine that runs many tests at once may take longer.
AGAIN = 2
LATE = re.compile(r"within \d+ ?ms|timed? ?out", re.IGNORECASE)


@dataclass(frozen=True)
class Selection:
    """Which scenarios to run, in whose words, and how many of them there are."""

    arguments: tuple[str, ...]
    scenarios: int
    suite: str = SUITE
    """The version of the suite."""

    def alone(self, scenario: str) -> Selection:
        """Return the selection of one of its scenarios."""
        at = self.arguments.index("--spec-version") if "--spec-version" in self.arguments else None
        revision = () if at is None else self.arguments[at : at + 2]
        return Selection(("--scenario", scenario, *revision), 1, self.suite)

    @property
    def name(self) -> str:
        words = " ".join(self.arguments).replace("--", "")
        return words if self.suite == SUITE else f"{words} of {self.suite}"


ALL = Selection(("--suite", "all"), 65)
HANDSHAKES = (
    Selection(("--suite", "all", "--spec-version", "2025-03-26"), 1),
    Selection(("--suite", "all", "--spec-version", "2025-06-18"), 27),
    Selection(("--suite", "all", "--spec-version", "2025-11-25"), 33),
)
# A run of the tests takes the first five: all scenarios, and those of each revision. The rest are the same
# ones, by what they are required for, and as they were.
SELECTIONS = (
    ALL,
    *HANDSHAKES,
    Selection(("--suite", "all", "--spec-version", "2026-07-28"), 40),
    Selection(("--requirements", "2025-11-25"), 33),
    Selection(("--requirements", "2026-07-28"), 50),
    # The last that was published before the suite knew 2026-07-28.
    Selection(("--suite", "all"), 32, "0.1.16"),
)

# With the fixture behind Portbook: over either transport, and as a server of each revision of the handshake
# era that has scenarios of its own. The newest of these meets clients of both eras, where what it asks says
# whose it is: in a process for each session, or over HTTP. A run of the tests takes the first six: all
# scenarios, also where the eras differ, and each revision once.
BEHIND = (
    ("stdio", ALL),
    ("http", ALL),
    ("session 2025-11-25", ALL),
    *(
        (f"{transport} {selection.arguments[-1]}", selection)
        for transport in ("http", "stdio")
        for selection in HANDSHAKES
    ),
    ("http 2025-11-25", ALL),
)

# The scenarios for clients that are not about authorisation.
CLIENT_SCENARIOS = (
    *("initialize", "tools_call", "elicitation-sep1034-client-defaults", "sse-retry", "request-metadata"),
    *("sep-2322-client-request-state", "http-standard-headers", "http-custom-headers"),
    *("http-invalid-tool-headers", "json-schema-ref-no-deref", "json-schema-2020-12-preservation"),
    *(f"sep-2640-client-{name}" for name in ("no-prefetch", "verify-digest", "verify-size")),
    "sep-2640-client-verify-frontmatter",
)

# Each scenario about authorisation has a client that does nothing.
_NOT_ABOUT_AUTHORISATION = 'case "$MCP_CONFORMANCE_SCENARIO" in auth/*) ;; *) exec "$@";; esac'

# What the client leaves behind for a scenario, beside its name, when it has done all that it does.
COMPLETED = ".completed"

# What may be skipped, and why.
SKIPPED = {
    "tasks-status-notifications": "the suite skips it always: it has yet to be written for listen streams",
    **dict.fromkeys(
        (f"sep-2575-client-declares-{name}-capability" for name in ("roots", "sampling", "elicitation")),
        "the scenario has no tool, and only a call says what its own client can do",
    ),
    **dict.fromkeys(
        (f"ClientMcpMethodHeader_{name}" for name in ("initialize", "notifications_initialized")),
        "a server that needs no handshake is not asked for one",
    ),
}


# What a server of 2025-11-25 cannot have of 2026-07-28, whoever stands before it: the beginnings of checks.
LACKING = {
    "sep-2640-": "skills are an extension of 2026-07-28",
    "sep-2322-elicitation-incomplete": "a question has no name of its own; Portbook numbers them",
    "sep-2322-ignore-unexpected-params": "likewise: the scenario answers by a name",
    "sep-2575-server-rejects-undeclared-capability": "a tool asks, is refused, and goes on as it likes",
    "sep-2575-missing-capability-http-400": "likewise",
    "sep-2663-mrtr-synchronous-before-task-creation": "a task is created before its first question",
    "sep-2663-server-returns-missing-capability": "no tool is for clients with tasks alone",
}


@dataclass
class Counted:
    """What came of one selection."""

    selection: Selection
    scenarios: int = 0
    checks: int = 0
    behind: str | None = None
    """How the fixture is behind Portbook, where it is."""
    problems: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)
    """For each problem that is one by the clock of the suite: its scenario."""

    @property
    def is_beyond(self) -> bool:
        """Whether the fixture is a server that some scenarios are too new for."""
        return " " in (self.behind or "") and "--spec-version" not in self.selection.arguments

    def __str__(self) -> str:
        verdict = "failed" if self.problems else "passed"
        way = "" if self.behind is None else f", {self.behind} behind"
        return f"{self.selection.name}{way}: {self.scenarios} scenarios, {self.checks} checks, {verdict}"


@contextlib.contextmanager
def served(folder: Path, behind: str | None) -> Iterator[HttpServer]:
    """A Portbook with the fixture: its own tools, or a server `behind` it.

    That is over `http`, over `stdio`, or over it in a process for each `session`; in the newest revision, or
    in the one that follows: `http 2025-11-25`.
    """
    tools = (str(EVERYTHING),)
    transport, _, revision = (behind or "").partition(" ")
    if behind is None:
        with http_server(cwd=folder, tools=tools) as server:
            yield server
        return
    with contextlib.ExitStack() as stack:
        (folder / "behind").mkdir()
        (folder / "front").mkdir()
        if transport == "http":
            fixture = stack.enter_context(http_server(cwd=folder / "behind", tools=tools))
            where = f'url = "{fixture.url}/mcp"'
            if revision:
                where += f'\nrevision = "{revision}"'
        else:
            # In a folder of its own, where it does not find the settings that name it.
            program = ["sh", "-c", f'cd "{folder / "behind"}" && exec "$@"', "sh"]
            if revision:
                program += [sys.executable, str(HERE / "handshake_only.py"), revision]
            portbook = stack.enter_context(portbook_program(folder))
            program += [str(portbook), "serve", "--stdio", *tools]
            where = f"command = {json.dumps(program)}"
            if transport == "session":
                where += '\nisolation = "session"'
        (folder / "front" / "portbook.toml").write_text(
            f'[mcp.fixture]\n{where}\ntrust = "first-use"\nprefix = false\n'
            'may_ask = ["elicitation", "sampling", "roots"]\n'
        )
        yield stack.enter_context(http_server(cwd=folder / "front", tools=()))


def run_all(selections: tuple[Selection, ...] = SELECTIONS, behind: str | None = None) -> Iterator[Counted]:
    """Yield what came of each selection, with the fixture itself or with a server `behind` Portbook.

    Raises `sdks.Unavailable` where the suite cannot be installed.
    """
    for selection in selections:
        sdks.conformance_suite(selection.suite)  # before a server waits for it
        counted = _run(selection, behind)
        for _ in range(AGAIN):
            if not counted.late or len(counted.late) < len(counted.problems):
                break
            alone = [_run(selection.alone(scenario), behind) for scenario in sorted({*counted.late})]
            counted.problems = [problem for each in alone for problem in each.problems]
            counted.late = [scenario for each in alone for scenario in each.late]
        yield counted


def _run(selection: Selection, behind: str | None) -> Counted:
    """Return what came of a selection, with a server of its own: none leans on what another left behind."""
    with tempfile.TemporaryDirectory() as name, served(Path(name), behind) as server:
        counted = Counted(selection, behind=behind)
        _require_answer(server.url, "before", counted)
        out = Path(name) / "checks"
        port = server.url.rpartition(":")[2]
        where = ("--url", f"http://localhost:{port}/mcp", "-o", str(out))
        done = _suite(selection.suite, Path(name), "server", *where, *selection.arguments)
        _require_answer(server.url, "after", counted)
        _count(out, counted)
        if done.returncode and not (counted.is_beyond or counted.problems):
            counted.problems.append(f"the suite ended with {done.returncode}: {done.stdout[-2000:]}")
    return counted


def run_clients(portbook: Path, revision: str) -> dict[str, Counted]:
    """Return what came of each scenario for clients: a Portbook that is spoken to in `revision`.

    The suite runs them side by side, in one process, and with them those about authorisation.

    Raises `sdks.Unavailable` where the suite cannot be installed.
    """
    found = {scenario: Counted(Selection((scenario, revision), 1)) for scenario in CLIENT_SCENARIOS}
    with tempfile.TemporaryDirectory() as name:
        command = ["sh", "-c", _NOT_ABOUT_AUTHORISATION, "sh", sys.executable, str(HERE / "client.py")]
        command += [str(portbook), revision]
        # Half a minute, which the suite gives a client, is not enough on a machine with much else to do.
        patience = ("--timeout", str(SUITE_SECONDS * 500))
        asked = ("--command", shlex.join(command), "--suite", "all", "-o", f"{name}/checks")
        done = _suite(SUITE, Path(name), "client", *asked, *patience)
        for scenario, counted in found.items():
            _count(Path(name, "checks"), counted, scenario)
            if not Path(name, scenario + COMPLETED).exists():
                own = [each.read_text() for each in Path(name, "checks").glob(f"{scenario}-*/stderr.txt")]
                said = "".join(own) or done.stdout + done.stderr
                counted.problems.append(f"the client did not come to its end: {said[-2000:]}")
    return found


def _suite(version: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    modules = sdks.conformance_suite(version)
    script = modules.path("@modelcontextprotocol/conformance", "dist", "index.js")
    command = [modules.node.node, str(script), *arguments]
    # It is started for each selection: compiled once, a start takes a quarter less.
    environment = {**os.environ, "NODE_COMPILE_CACHE": str(modules.folder / "compiled")}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SUITE_SECONDS
    )


# Where the suite writes the checks of a scenario.
FOLDER = re.compile(r"\A(?:server-)?(.+)-\d{4}-\d\d-\d\dT[-\d]+Z\Z")


def _count(out: Path, counted: Counted, scenario: str | None = None) -> None:
    """Add up the checks of all scenarios, or of one."""
    for path in sorted(out.rglob("checks.json")):
        if scenario is not None and FOLDER.sub(r"\1", path.parent.name) != scenario:
            continue
        counted.scenarios += 1
        for check in json.loads(path.read_text()):
            counted.checks += 1
            problem = _problem(check)
            is_lacking = counted.is_beyond and check["id"].startswith(tuple(LACKING))
            if problem is not None and not is_lacking:
                counted.problems.append(f"{path.parent.name}: {problem}")
                if LATE.search(problem):
                    counted.late.append(FOLDER.sub(r"\1", path.parent.name))
    if counted.scenarios != counted.selection.scenarios:
        counted.problems.append(f"{counted.selection.scenarios} scenarios were expected")


def _problem(check: dict[str, Any]) -> str | None:
    status, name = check["status"], check["id"]
    is_known = name in SKIPPED or check["name"] in SKIPPED
    if status in ("SUCCESS", "INFO") or (status == "SKIPPED" and is_known):
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
    with tempfile.TemporaryDirectory() as folder, portbook_program(Path(folder)) as portbook:
        return _run_everything(portbook)


def _everything(portbook: Path) -> Iterator[Counted]:
    yield from run_all()
    for behind in ("stdio", "http"):
        yield from run_all(behind=behind)
    for behind, selection in BEHIND[2:]:
        yield from run_all((selection,), behind)
    yield from run_clients(portbook, "2026-07-28").values()


def _run_everything(portbook: Path) -> int:
    failed = 0
    try:
        for counted in _everything(portbook):
            print(counted, flush=True)
            for problem in counted.problems:
                print(f"  {problem}")
            failed += bool(counted.problems)
    except sdks.Unavailable as unavailable:
        print(unavailable)
        return 2
    for name, reason in SKIPPED.items():
        print(f"skipped: {name}: {reason}")
    for name, reason in LACKING.items():
        print(f"beyond a server of 2025-11-25: {name}: {reason}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
