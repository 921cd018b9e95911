"""`portbook call`: one call through the boundary, from the command line; its progress, as it comes."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.cli.arguments import arguments_of_a_call, ask_for, missing_arguments, read_arguments
from portbook.cli.options import (
    START_ERRORS,
    common_options,
    debug_option,
    json_option,
    settings_from,
    toolset_option,
)
from portbook.cli.output_and_errors import claim_stdout, print_json, say, stop_with
from portbook.errors import Ending, Failed, Reason, Refused
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, Arrival, Done, Draft, JSONObject, Outcome
from portbook.protocol.negotiation import LEVELS
from portbook.settings import CONFIG_NAME, Settings
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Tool
from portbook.tools.tool_names import canonical_name, is_declarable, slug_of
from portbook.wire.violations import violations

__all__ = ["TerminalClient", "command"]


@click.command("call")
@arguments_of_a_call
@toolset_option
@click.option("--approval", metavar="ID", help="Run under this approval.")
@click.option(
    "--wait-ms",
    type=click.IntRange(0, 600_000),
    default=0,
    help="Wait up to this many milliseconds for an approval.",
)
@debug_option
@json_option("Print compact JSON, even on a terminal; errors too.")
@common_options
def command(
    tool: str,
    arguments: tuple[str, ...],
    *,
    document: str | None,
    toolsets: tuple[str, ...],
    approval: str | None,
    wait_ms: int,
    debug: bool,
    is_json: bool,
    config: Path | None,
    log_dir: Path | None,
    deterministic_ids: bool | None,
) -> None:
    """Run one call through the boundary and print its result.

    TOOL is any name of a tool: as `portbook tools` shows it, as MCP clients see it, or as it was declared.
    A value is a string where the tool's schema wants one, and JSON otherwise: topK=3, tags='["a"]'.
    NAME=@FILE takes the content of a file, NAME=- standard input. A terminal is asked for missing arguments,
    and shows the tool's progress and messages while it runs.
    The exit code is 0 for a result, 2 for an invalid call, 3 for a call that is not allowed (no key, policy,
    no approval), 4 for an unknown tool, 5 for a result that breaks its schema, and 1 for any other failure.
    """
    if not is_declarable(slug_of(tool)):
        raise click.UsageError(
            f"{tool!r} is not a tool name; `portbook tools` lists the tools that are served"
        )
    out = claim_stdout()
    try:
        settings = settings_from(config, log_dir, deterministic_ids, toolsets=toolsets, debug=debug)
        app = assemble(settings, is_exposed=False, warn=lambda text: say(f"warning: {text}"))
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    for warning in app.warnings:
        say(f"warning: {warning}")
    is_person = sys.stdin.isatty() and out.isatty() and not is_json
    meta: JSONObject = {}
    if approval is not None:
        meta["portbook/approval_id"] = approval
    if wait_ms:
        meta["portbook/wait_ms"] = wait_ms
    arrival = Arrival("cli", "call", os.environ.pop("PORTBOOK_KEY", None))
    read = partial(_given, arguments=arguments, document=document, is_person=is_person)
    outcome, is_redacted, hint = asyncio.run(_invoke(app, tool, read, arrival, meta))
    if is_redacted:
        say("note: secrets were redacted")
    if isinstance(outcome, Done):
        click.echo(_pretty(outcome) if out.isatty() and not is_json else outcome.body.decode(), out)
        return
    if is_json:
        print_json(_as_data(outcome), out, is_ascii=True)
    else:
        _explain(outcome)
        for remedy in _remedies(outcome, settings, hint):
            say(f"  {remedy}")
    raise click.exceptions.Exit(outcome.row.exit)


def _given(
    tool: Tool | None, arguments: tuple[str, ...], document: str | None, *, is_person: bool
) -> JSONObject:
    """Return the arguments of the command line, and of a person those that are missing."""
    given = read_arguments(tool, arguments, document)
    if tool is not None and is_person:
        given |= ask_for(tool, missing_arguments(tool, given))
    return given


async def _invoke(
    app: App, tool: str, read: Callable[[Tool | None], JSONObject], arrival: Arrival, meta: JSONObject
) -> tuple[Outcome, bool, str]:
    """Return the outcome, whether it was redacted, and the name that was meant where no such tool exists.

    `read` returns the arguments for the tool, which says what they are.
    """
    # A Ctrl-C that comes just before the loop waits wakes it only if it listens for a signal, of any kind.
    asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, lambda: None)
    try:
        await app.boundary.settle()
        # Any of its names; one that no tool has is refused and recorded as one that could be a tool's.
        name = app.catalog.canonical_name(slug_of(tool)) or canonical_name(slug_of(tool))
        given = read(app.catalog.find(name))
        listener = _listener()
        completed = await app.boundary.invoke(name, given, arrival, meta, listener)
        if listener is not None:
            listener.flush()  # a tool that ran out of time has left its progress there
        outcome = completed.outcome
        is_unknown = isinstance(outcome, Refused) and outcome.reason is Reason.UNKNOWN_TOOL
        # A caller is not told of a tool that its key does not open.
        hint = did_you_mean(slug_of(tool), app.tools_open_to(arrival.key)) if is_unknown else ""
        return outcome, completed.is_redacted, hint
    finally:
        await app.close()


def _listener() -> TerminalClient | None:
    """Return the person who sees what the tool reports; None where standard error is no terminal."""
    if not sys.stderr.isatty():
        return None
    return TerminalClient(sys.stderr)


def _remedies(ending: Ending, settings: Settings, hint: str) -> Iterator[str]:
    """Yield what the person at this command line can do; the sentence of the ending is for every caller."""
    if hint:
        yield hint
    elif ending.reason is Reason.UNKNOWN_TOOL and settings.config is None and not settings.more_toolsets:
        yield f"there is no {CONFIG_NAME} here; name its file with --toolset, or settings with --config"
    if ending.reason is Reason.TOOL_FAILED and not settings.tracebacks:
        yield "--debug prints the traceback"


def _pretty(done: Done) -> str:
    return escaped_json(json.dumps(json.loads(done.body), indent=2, ensure_ascii=False))


def _as_data(ending: Ending) -> dict[str, Any]:
    return {
        "error": {
            "canonical_code": ending.row.canonical.code,
            "reason": ending.reason.value,
            "message": ending.sentence,
            "violations": violations(ending) if isinstance(ending, Refused) else [],
            **ending.details,
        }
    }


def _explain(ending: Ending) -> None:
    say(f"{ending.row.canonical.code}: {ending.sentence}")
    for finding in ending.findings:
        say(f"  {finding.pointer or '(root)'}: {finding.message}")
    for name, value in ending.details.items():
        if name != "happened":  # its sentence has it
            is_text = isinstance(value, str | int | float)
            say(f"  {name}: {value if is_text else json.dumps(value, ensure_ascii=False)}")
    if ending.note and ending.note not in (ending.happened, *ending.details.values()):
        say(f"  {ending.note}")


# The person at the terminal as the client of a call: sees a tool's progress and log messages as they come.
#
# Both go to standard error. Progress stays on one line, which the next message or the result replaces. A tool
# may report from any thread. Nobody is asked: a terminal declares no capabilities.


# What a person wants to read; debug messages are for the author, who has other ways.
_LEAST: Final = "info"
_CLEAR: Final = "\r\033[K"
_MOST: Final = 2000


class TerminalClient:
    """Prints what a tool reports to `out`, which is a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._writing = threading.Lock()
        self._has_line = False
        """Whether a line of progress stands there, which the next text replaces."""

    @property
    def capabilities(self) -> JSONObject:
        """Return none."""
        return {}

    @property
    def is_waiting(self) -> bool:
        """Return False: no question is asked."""
        return False

    def progress(self, progress: float, total: float | None, message: Draft[str] | None) -> None:
        """Show progress in place of the one before it."""
        words = "" if message is None else f" {message.finish()}"
        share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{_CLEAR}{escaped(f'portbook: {share}{words}', width)}", has_line=True)

    def hears(self, level: str) -> bool:
        """Return whether a person wants to see messages of that level."""
        return LEVELS.index(level) >= LEVELS.index(_LEAST)

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Print a log message on a line of its own."""
        said = data.finish()
        words = escaped(said, _MOST) if isinstance(said, str) else escaped_json(json.dumps(said))[:_MOST]
        source = "" if logger is None else f" {escaped(logger)}:"
        self._write(f"{_CLEAR if self._has_line else ''}portbook: {level}:{source} {words}\n", has_line=False)

    def flush(self) -> None:
        """Remove a line of progress: what follows is the result."""
        if self._has_line:
            self._write(_CLEAR, has_line=False)

    async def room(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return that it cannot be asked at all."""
        return {}

    async def ask(
        self, requests: Mapping[str, JSONObject], is_usable: Callable[[str, JSONObject], bool]
    ) -> dict[str, JSONObject]:
        """Fail: nobody is asked here."""
        raise Failed(Reason.NO_ANSWER, note="asked where no client can answer")

    @property
    def answers_later(self) -> bool:
        """Return False."""
        return False

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """Fail: there are no rounds."""
        raise Failed(Reason.NO_ANSWER, note="asked where no client can answer")

    def detach(self, message: str | None = None) -> bool:
        """Do nothing: the command waits for the result."""
        return False

    def let_go(self) -> None:
        """Do nothing: there is no stream to close."""

    def complete_elicitation(self, identifier: str) -> None:
        """Do nothing: no page is shown here."""

    def _write(self, text: str, *, has_line: bool) -> None:
        with self._writing:
            self._out.write(text)
            self._out.flush()
            self._has_line = has_line
