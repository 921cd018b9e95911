"""`portbook explain`: how policy decides a call, without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from portbook.app.explain_and_dry_run import dry_run, explanation
from portbook.cli.arguments import arguments_of_a_call, read_arguments
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import (
    START_ERRORS,
    config_option,
    json_option,
    settings_from,
    toolset_option,
)
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, say, stop_with
from portbook.escaping import escaped, escaped_lines
from portbook.stores.caller_keys import ANONYMOUS
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.catalog import Catalog
from portbook.tools.tool_names import identifier_of, named_by, slug_of

__all__ = ["command"]


@click.command("explain")
@arguments_of_a_call
@click.option("--caller", default=ANONYMOUS.name, show_default=True, help="Name of the caller.")
@click.option("--session", help="Session of the call.")
@click.option(
    "--attempt", type=click.IntRange(1), default=1, show_default=True, help="Attempt number of the call."
)
@toolset_option
@json_option()
@config_option
def command(
    tool: str,
    arguments: tuple[str, ...],
    *,
    document: str | None,
    caller: str,
    session: str | None,
    attempt: int,
    toolsets: tuple[str, ...],
    is_json: bool,
    config: Path | None,
) -> None:
    """Show how policy decides a call, by which rule, and what would change that. Nothing runs.

    TOOL is any name of a tool, or mcp.resource:URI for a resource, or mcp.prompt:NAME for a prompt.

    The exit code is 0 for a call that is allowed, and 3 for one that is denied or needs approval.
    """
    out = claim_stdout()
    try:
        dry = dry_run(settings_from(config, toolsets=toolsets))
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    for warning in (*dry.warnings, *filter(None, (dry.doubt_about(caller),))):
        say(f"warning: {warning}")
    named = dry.catalog.named(_canonical(dry.catalog, tool))
    if named is None:
        raise fail(
            f"there is no {named_by(tool)[0]} {tool!r}; {_remedy(dry.catalog, tool)}", ExitCode.UNKNOWN
        )
    found, taken = named
    given = {**taken, **read_arguments(found, arguments, document)}
    decision = dry.decide(found, given, caller=caller, attempt=attempt, session=session)
    shown: dict[str, Any] = explanation(found, decision, given)
    print_data(shown, _in_words(shown), out, is_json=is_json)
    if decision.reason is not None:
        raise click.exceptions.Exit(ExitCode.REFUSED)


def _canonical(catalog: Catalog, name: str) -> str:
    """Return the canonical name of a tool by any of its names; every other name as it is."""
    return (catalog.canonical_name(slug_of(name)) or name) if named_by(name)[0] == "tool" else name


def _remedy(catalog: Catalog, name: str) -> str:
    """Return what to do about a name that no tool has: a resource or a prompt may have it."""
    if named_by(name)[0] == "tool":
        if catalog.locate(name) is not None or "://" in name:
            return f"name a resource as {identifier_of('resource', name)}"
        if catalog.find(name, "prompt") is not None:
            return f"name a prompt as {identifier_of('prompt', name)}"
    names = [tool.spec.name for tool in catalog.of("tool")]
    return did_you_mean(slug_of(name), names, "`portbook tools` lists what is served")


def _in_words(shown: dict[str, Any]) -> list[str]:
    colour = {"allow": "green", "ask": "yellow", "deny": "red"}[shown["decision"]]
    decision = click.style(shown["decision"], fg=colour, bold=True)
    lines = [
        f"{escaped(shown['tool'])} ({shown['effect']}): {decision}",
        f"  decided by: {escaped(shown['rule'])} ({escaped(shown['place'])})",
        f"  to change it: {escaped_lines(shown['remedy'])}",
    ]
    if shown["violations"]:
        lines.append("  these arguments are invalid, whatever policy decides:")
        lines += [
            f"    {escaped(each['pointer']) or '(root)'}: {escaped(each['message'])}"
            for each in shown["violations"]
        ]
    return lines
