"""`portbook call`: one call through the boundary, from the command line."""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import click

from portbook.assembly import Assembled, assemble
from portbook.cli.options import START_ERRORS, claim_stdout, common_options, say, settings_from, stop_with
from portbook.errors import Ending, Reason, Refused
from portbook.model import Arrival, Done, JSONObject
from portbook.tools.spec import is_slug, slug_of
from portbook.wire.jsonrpc import violations
from portbook.wire.parsing import parse

__all__ = ["command"]


@click.command("call")
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--input", "document", help="All arguments as one JSON object; - reads it from standard input.")
@click.option(
    "--toolset", "toolsets", multiple=True, help="A Python file or module with a Toolset. Repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="Compact JSON even on a terminal; errors as JSON too.")
@common_options
def command(
    tool: str,
    arguments: tuple[str, ...],
    *,
    document: str | None,
    toolsets: tuple[str, ...],
    as_json: bool,
    config: Path | None,
    log_dir: Path | None,
    deterministic_ids: bool | None,
) -> None:
    """Run one call through the boundary and print its result.

    A value is text where the tool's schema wants text, and JSON everywhere else: topK=3, tags='["a"]'.
    The exit status is 0 for a result, 2 for a bad call, 3 without a valid key, 4 for an unknown tool, 5 for a
    result that breaks its schema, 1 for anything else.
    """
    if not is_slug(slug_of(tool)):
        raise click.UsageError(
            f"{tool!r} cannot be a tool's name; `portbook tools` lists those that are served"
        )
    out = claim_stdout()
    try:
        settings = settings_from(config, log_dir, deterministic_ids)
        settings = replace(settings, toolsets=(*settings.toolsets, *toolsets))
        assembled = assemble(settings, is_exposed=False)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    for warning in assembled.warnings:
        say(f"warning: {warning}")
    given = _arguments(assembled, tool, arguments, document)
    arrival = Arrival("cli", "call", os.environ.pop("PORTBOOK_KEY", None))
    try:
        outcome = asyncio.run(assembled.boundary.invoke(tool, given, arrival)).outcome
    finally:
        assembled.close()
    if isinstance(outcome, Done):
        click.echo(_pretty(outcome) if out.isatty() and not as_json else outcome.body.decode(), out)
        return
    if as_json:
        click.echo(json.dumps(_as_data(outcome), separators=(",", ":")), out)
    else:
        _explain(outcome, _similar(assembled, tool))
    raise click.exceptions.Exit(outcome.row.exit)


def _arguments(assembled: Assembled, tool: str, pairs: tuple[str, ...], document: str | None) -> JSONObject:
    arguments: JSONObject = {}
    if document is not None:
        arguments = _object(sys.stdin.buffer.read() if document == "-" else os.fsencode(document))
    found = assembled.catalog.find(slug_of(tool))
    properties: Any = found.spec.input_schema.get("properties", {}) if found else {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        _require_utf8(pair)
        if not equals:
            raise click.UsageError(f"{pair!r}: write arguments as name=value")
        if name in arguments:
            raise click.UsageError(f"{name!r} is given twice")
        arguments[name] = value if _wants_text(properties.get(name)) else _json_or_text(value)
    return arguments


def _require_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise click.UsageError("arguments must be UTF-8") from None


def _object(text: bytes) -> JSONObject:
    try:
        value = parse(text)
    except Refused as refused:
        raise click.UsageError(f"--input: {refused.findings[0].message}") from None
    if not isinstance(value, dict):
        raise click.UsageError("--input: must be a JSON object")
    return value


def _wants_text(schema: Any) -> bool:
    return isinstance(schema, dict) and cast("dict[str, Any]", schema).get("type") == "string"


def _json_or_text(value: str) -> Any:
    try:
        return parse(os.fsencode(value))
    except Refused:
        return value


def _pretty(done: Done) -> str:
    return json.dumps(json.loads(done.body), indent=2, ensure_ascii=False)


def _as_data(ending: Ending) -> dict[str, Any]:
    return {
        "error": {
            "canonical_code": ending.row.canonical,
            "reason": ending.reason.value,
            "message": ending.row.sentence,
            "violations": violations(ending) if isinstance(ending, Refused) else [],
        }
    }


def _similar(assembled: Assembled, tool: str) -> str | None:
    names = [known.spec.name for known in assembled.catalog]
    return next(iter(difflib.get_close_matches(slug_of(tool), names, n=1)), None)


def _explain(ending: Ending, similar: str | None) -> None:
    say(f"{ending.row.canonical}: {ending.row.sentence}")
    if ending.reason is Reason.UNKNOWN_TOOL and similar:
        say(f"  did you mean {similar}?")
    for finding in ending.findings:
        say(f"  {finding.pointer or '(root)'}: {finding.message}")
    if ending.note:
        say(f"  {ending.note}")
