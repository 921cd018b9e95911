"""`portbook call`: one call through the boundary, from the command line."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from portbook.app.assemble import App, assemble
from portbook.cli.arguments import read_arguments
from portbook.cli.options import (
    START_ERRORS,
    claim_stdout,
    common_options,
    debug_option,
    say,
    settings_from,
    stop_with,
)
from portbook.errors import Ending, Reason, Refused
from portbook.model import Arrival, Done, JSONObject, Outcome
from portbook.tools.spec import is_slug, slug_of
from portbook.wire.jsonrpc import violations

__all__ = ["command"]


@click.command("call")
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--input", "document", help="All arguments as one JSON object; - reads it from standard input.")
@click.option(
    "--toolset", "toolsets", multiple=True, help="A Python file or module with a Toolset. Repeatable."
)
@click.option("--approval", metavar="ID", help="Redeem this approval.")
@click.option(
    "--wait-ms", type=click.IntRange(0, 600_000), default=0, help="Wait so long for a person's decision."
)
@debug_option
@click.option("--json", "as_json", is_flag=True, help="Compact JSON even on a terminal; errors as JSON too.")
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
    as_json: bool,
    config: Path | None,
    log_dir: Path | None,
    deterministic_ids: bool | None,
) -> None:
    """Run one call through the boundary and print its result.

    A value is text where the tool's schema wants text, and JSON everywhere else: topK=3, tags='["a"]'.
    The exit status is 0 for a result, 2 for a bad call, 3 for one that is not allowed (no key, policy, no
    approval), 4 for an unknown tool, 5 for a result that breaks its schema, 1 for anything else.
    """
    if not is_slug(slug_of(tool)):
        raise click.UsageError(
            f"{tool!r} cannot be a tool's name; `portbook tools` lists those that are served"
        )
    out = claim_stdout()
    try:
        settings = settings_from(config, log_dir, deterministic_ids)
        settings = replace(
            settings,
            toolsets=(*settings.toolsets, *toolsets),
            tracebacks=debug or settings.tracebacks,
        )
        app = assemble(settings, is_exposed=False)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    for warning in app.warnings:
        say(f"warning: {warning}")
    given = read_arguments(app.catalog.find(slug_of(tool)), arguments, document)
    meta: JSONObject = {}
    if approval is not None:
        meta["portbook/approval_id"] = approval
    if wait_ms:
        meta["portbook/wait_ms"] = wait_ms
    arrival = Arrival("cli", "call", os.environ.pop("PORTBOOK_KEY", None))
    outcome = asyncio.run(_invoke(app, tool, given, arrival, meta))
    if isinstance(outcome, Done):
        click.echo(_pretty(outcome) if out.isatty() and not as_json else outcome.body.decode(), out)
        return
    if as_json:
        click.echo(json.dumps(_as_data(outcome), separators=(",", ":")), out)
    else:
        _explain(outcome, _similar(app, tool))
    raise click.exceptions.Exit(outcome.row.exit)


async def _invoke(app: App, tool: str, given: JSONObject, arrival: Arrival, meta: JSONObject) -> Outcome:
    try:
        return (await app.boundary.invoke(tool, given, arrival, meta)).outcome
    finally:
        await app.close()


def _pretty(done: Done) -> str:
    return json.dumps(json.loads(done.body), indent=2, ensure_ascii=False)


def _as_data(ending: Ending) -> dict[str, Any]:
    return {
        "error": {
            "canonical_code": ending.row.canonical.code,
            "reason": ending.reason.value,
            "message": ending.row.sentence,
            "violations": violations(ending) if isinstance(ending, Refused) else [],
            **ending.details,
        }
    }


def _similar(app: App, tool: str) -> str | None:
    names = [known.spec.name for known in app.catalog]
    return next(iter(difflib.get_close_matches(slug_of(tool), names, n=1)), None)


def _explain(ending: Ending, similar: str | None) -> None:
    say(f"{ending.row.canonical.code}: {ending.row.sentence}")
    if ending.reason is Reason.UNKNOWN_TOOL and similar:
        say(f"  did you mean {similar}?")
    for finding in ending.findings:
        say(f"  {finding.pointer or '(root)'}: {finding.message}")
    for name, value in ending.details.items():
        say(f"  {name}: {value}")
    if ending.note:
        say(f"  {ending.note}")
