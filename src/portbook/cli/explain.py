"""`portbook explain`: what policy says of a call, without making it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from portbook.access.callers import ANONYMOUS
from portbook.app.rules_from_settings import base_urls_of, policy_of
from portbook.app.tools_from_settings import collect_tools
from portbook.canonical import json_bytes
from portbook.cli.arguments import read_arguments
from portbook.cli.options import START_ERRORS, claim_stdout, config_option, say, settings_from, stop_with
from portbook.policy import Decision, PolicyInput, decide
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import identifier_of, named_by
from portbook.wire.jsonrpc import violations_of

__all__ = ["command"]


@click.command("explain")
@click.argument("tool")
@click.argument("arguments", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--input", "document", help="All arguments as one JSON object; - reads it from standard input.")
@click.option("--caller", default=ANONYMOUS.name, show_default=True, help="Whose call it would be.")
@click.option("--session", help="The session that it would belong to.")
@click.option(
    "--attempt", type=click.IntRange(1), default=1, show_default=True, help="Which attempt it would be."
)
@click.option(
    "--toolset", "toolsets", multiple=True, help="A Python file or module with a Toolset. Repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, even on a terminal.")
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
    as_json: bool,
    config: Path | None,
) -> None:
    """Show what policy says of a call, which rule says it and what would change it; nothing is run.

    TOOL is the name of a tool; mcp.resource:URI and mcp.prompt:NAME stand for a resource and for a prompt.

    The exit status is 0 for a call that is allowed, 3 for one that is not or that a person has to approve.
    """
    out = claim_stdout()
    try:
        settings = settings_from(config, None, None)
        settings = replace(settings, toolsets=(*settings.toolsets, *toolsets))
        catalog = collect_tools(settings).catalog
        policy = policy_of(settings, base_urls_of(tool.spec for tool in catalog))
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    named = catalog.named(tool)
    if named is None:
        say(f"there is no {named_by(tool)[0]} {tool!r}; {_remedy(catalog, tool)}")
        raise click.exceptions.Exit(4)
    found, taken = named
    given = {**taken, **read_arguments(found, arguments, document)}
    subject = PolicyInput.of(
        found.spec, given, len(json_bytes(given)), caller=caller, attempt=attempt, session=session
    )
    decision = decide(policy, subject)
    shown = _as_data(found, decision, given)
    if as_json or not out.isatty():
        click.echo(json.dumps(shown, separators=(",", ":"), ensure_ascii=False), out)
    else:
        click.echo("\n".join(_in_words(shown)), out)
    if decision.reason is not None:
        raise click.exceptions.Exit(3)


def _remedy(catalog: Catalog, name: str) -> str:
    """Return what to do about a name that no tool has: something else may have it."""
    if named_by(name)[0] == "tool":
        if catalog.locate(name) is not None or "://" in name:
            return f"a resource is named {identifier_of('resource', name)}"
        if catalog.find(name, "prompt") is not None:
            return f"a prompt is named {identifier_of('prompt', name)}"
    return "`portbook tools` lists those that are served"


def _as_data(tool: Tool, decision: Decision, arguments: dict[str, Any]) -> dict[str, Any]:
    findings = () if tool.input.allows(arguments) else tool.input.findings(arguments)
    return {
        "tool": tool.spec.identifier,
        "effect": tool.spec.effect.value,
        "decision": decision.action.value,
        "rule": decision.rule,
        "place": decision.place,
        "reason": None if decision.reason is None else decision.reason.value,
        "remedy": decision.remedy,
        "violations": violations_of(findings),
    }


def _in_words(shown: dict[str, Any]) -> list[str]:
    colour = {"allow": "green", "ask": "yellow", "deny": "red"}[shown["decision"]]
    lines = [
        f"{shown['tool']} ({shown['effect']}): {click.style(shown['decision'], fg=colour, bold=True)}",
        f"  decided by: {shown['rule']} ({shown['place']})",
        f"  would change it: {shown['remedy']}",
    ]
    if shown["violations"]:
        lines.append("  these arguments would be refused whatever policy says:")
        lines += [f"    {each['pointer'] or '(root)'}: {each['message']}" for each in shown["violations"]]
    return lines
