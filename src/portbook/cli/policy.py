"""`portbook policy`: try a policy out, on cases that are written down and on calls that were recorded."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import click

from portbook.access.callers import ANONYMOUS
from portbook.app.rules_from_settings import base_urls_of, policy_of
from portbook.app.tools_from_settings import collect_tools
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_files import records_in, stream_folder
from portbook.canonical import NotJSON, json_bytes
from portbook.cli.options import START_ERRORS, claim_stdout, config_option, say, settings_from, stop_with
from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.policy import Action, Policy, PolicyInput, decide
from portbook.policy.replay import Replayed, replay, subject_of
from portbook.settings import BadSettings
from portbook.tools.catalog import Catalog

__all__ = ["command"]

# What a case may say, the type of each member, and that type in words.
_MEMBERS: Final[dict[str, tuple[type, str]]] = {
    "args": (dict, "a table"),
    "attempt": (int, "a whole number"),
    **dict.fromkeys(("caller", "expect", "name", "rule", "session", "tool"), (str, "a string")),
}


@click.group("policy")
def command() -> None:
    """Try a policy out before it is in force."""


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--toolset", "toolsets", multiple=True, help="A Python file or module with a Toolset. Repeatable."
)
@click.option("--json", "as_json", is_flag=True, help="JSON, even on a terminal.")
@config_option
def test(file: Path, *, toolsets: tuple[str, ...], as_json: bool, config: Path | None) -> None:
    """Compare decisions with those that FILE expects; exit with 1 where one differs.

    FILE is TOML with a [[case]] for each: tool, expect (allow, ask or deny), and if you like args, caller,
    session, attempt, the name of the rule that must decide, and a name for the case. A tool can also be
    mcp.resource:URI or mcp.prompt:NAME.
    """
    out = claim_stdout()
    try:
        settings = settings_from(config, None, None)
        settings = replace(settings, toolsets=(*settings.toolsets, *toolsets))
        catalog = collect_tools(settings).catalog
        policy = policy_of(settings, base_urls_of(tool.spec for tool in catalog))
        verdicts = [_verdict(policy, catalog, case, place) for place, case in _cases(file)]
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    failed = sum(not verdict["ok"] for verdict in verdicts)
    if as_json or not out.isatty():
        data = {"ok": not failed, "cases": verdicts}
        click.echo(json.dumps(data, separators=(",", ":"), ensure_ascii=False), out)
    else:
        for verdict in verdicts:
            click.echo(_line(verdict), out)
    say(f"{len(verdicts) - failed} of {len(verdicts)} cases as expected")
    if failed:
        raise click.exceptions.Exit(1)


def _cases(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import tomllib

    from portbook.settings.places import Places

    try:
        text = path.read_text("utf-8")
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path}: not TOML: {error}") from None
    cases = document.get("case")
    if not isinstance(cases, list) or document.keys() != {"case"}:
        raise BadSettings(f"{path}: a list of cases, each started with [[case]], and nothing else")
    places = Places(text)
    for number, case in enumerate(cast("list[Any]", cases)):
        place = f"{path}:{places.line_of(('case', number))}"
        if not isinstance(case, dict):
            raise BadSettings(f"{place}: start each case with [[case]]")
        yield place, cast("dict[str, Any]", case)


def _verdict(policy: Policy, catalog: Catalog, case: dict[str, Any], place: str) -> dict[str, Any]:
    for name, value in case.items():
        if name not in _MEMBERS:
            known = ", ".join(sorted(_MEMBERS))
            raise BadSettings(f"{place}: {name[:80]!r} is not part of a case; there are {known}")
        kind, wanted = _MEMBERS[name]
        if type(value) is not kind:
            raise BadSettings(f"{place}: {name} must be {wanted}")
    if case.get("expect") not in tuple(Action):
        raise BadSettings(f"{place}: expect must be one of {', '.join(Action)}")
    named = catalog.named(str(case.get("tool")))
    if named is None:
        raise BadSettings(f"{place}: there is no such tool; `portbook tools` lists those that are served")
    tool, taken = named
    arguments = {**taken, **case.get("args", {})}
    try:
        size = len(json_bytes(arguments))
    except NotJSON:
        raise BadSettings(f"{place}: args must be a table that JSON can hold") from None
    subject = PolicyInput.of(
        tool.spec,
        arguments,
        size,
        caller=case.get("caller", ANONYMOUS.name),
        attempt=case.get("attempt", 1),
        session=case.get("session"),
    )
    decision = decide(policy, subject)
    is_right = decision.action == case["expect"] and case.get("rule", decision.rule) == decision.rule
    return {
        "ok": is_right,
        "case": case.get("name", tool.spec.name),
        "place": place,
        "expected": case["expect"],
        "decision": decision.action.value,
        "rule": decision.rule,
        "rule_place": decision.place,
    }


def _line(verdict: dict[str, Any]) -> str:
    mark = click.style("ok    ", fg="green") if verdict["ok"] else click.style("FAILED", fg="red")
    got = f"{verdict['decision']} by {verdict['rule']} ({verdict['rule_place']})"
    wanted = "" if verdict["ok"] else f", expected {verdict['expected']}"
    return f"{mark} {verdict['place']}: {escaped(verdict['case'])}: {got}{wanted}"


@command.command("diff")
@click.argument("old", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("new", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--audit",
    "log_dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="The folder of records, such as runs.",
)
@click.option("--json", "as_json", is_flag=True, help="JSON, even on a terminal.")
def diff(old: Path, new: Path, *, log_dir: Path, as_json: bool) -> None:
    """Show which decisions on recorded calls would be others under NEW than under OLD.

    OLD and NEW are settings files. Exit with 1 where a decision changes. Records hold arguments only where
    [audit] arguments = true; without them, what a rule's `where` would say is unknown.
    """
    out = claim_stdout()
    try:
        before, after = _policy(old), _policy(new)
        replayed = undecided = 0
        changes: Counter[tuple[str, str, Replayed, Replayed]] = Counter()
        for record in _records(log_dir):
            subject = subject_of(record)
            if subject is None:
                continue
            replayed += 1
            has_arguments = "arguments" in record
            was = replay(before, subject, has_arguments=has_arguments)
            becomes = replay(after, subject, has_arguments=has_arguments)
            undecided += "unknown" in (was.decision, becomes.decision)
            if was.decision != becomes.decision:
                changes[(subject.name, subject.caller, was, becomes)] += 1
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    rows = [
        {
            "tool": tool,
            "caller": caller,
            "calls": count,
            "old": was._asdict(),
            "new": becomes._asdict(),
        }
        for (tool, caller, was, becomes), count in sorted(changes.items())
    ]
    if as_json or not out.isatty():
        click.echo(
            json.dumps(
                {"replayed": replayed, "undecided": undecided, "changes": rows}, separators=(",", ":")
            ),
            out,
        )
    else:
        for row in rows:
            click.echo(_change(row), out)
    say(f"{replayed} recorded calls, {sum(changes.values())} decided differently")
    if undecided:
        say(f"of {undecided} it cannot be told: their records lack the arguments that a rule asks about")
    if changes:
        raise click.exceptions.Exit(1)


def _policy(path: Path) -> Policy:
    settings = settings_from(path, None, None)
    catalog = collect_tools(replace(settings, toolsets=(), docs_enabled=False)).catalog
    return policy_of(settings, base_urls_of(tool.spec for tool in catalog))


def _records(log_dir: Path) -> Iterator[JSONObject]:
    def on_bad(file: str, line: int) -> None:
        say(f"warning: {file}:{line}: not a record; left out")

    for located in records_in(stream_folder(log_dir, EXECUTION_STREAM), on_bad):
        yield located.record


def _change(row: dict[str, Any]) -> str:
    old, new = row["old"], row["new"]
    calls = "1 call" if row["calls"] == 1 else f"{row['calls']} calls"
    why = f" by {new['rule']}" if new["rule"] else " (depends on the arguments)"
    return f"{row['tool']} by {escaped(row['caller'])}: {old['decision']} -> {new['decision']}{why}, {calls}"
