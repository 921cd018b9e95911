"""`portbook policy`: test a policy on written cases and on recorded calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

import click

from portbook.app.explain_and_dry_run import DryRun, dry_run
from portbook.app.replay_of_recorded_calls import ReplayedCalls
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader_and_follower import records_in, stream_folder
from portbook.canonical import NotJSON
from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from, toolset_option
from portbook.cli.output_and_errors import claim_stdout, print_data, say, stop_with
from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.policy import Action, Policy
from portbook.settings import BadSettings
from portbook.stores.caller_keys import ANONYMOUS
from portbook.text.did_you_mean import did_you_mean

__all__ = ["command"]

# The members of a case, the type of each, and that type in words.
_MEMBERS: Final[dict[str, tuple[type, str]]] = {
    "args": (dict, "a table"),
    "attempt": (int, "a whole number"),
    **dict.fromkeys(("caller", "expect", "name", "rule", "session", "tool"), (str, "a string")),
}


@click.group("policy", cls=CommandGroup)
def command() -> None:
    """Test a policy before it is in force."""


@command.command("test")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@toolset_option
@json_option()
@config_option
def test(file: Path, *, toolsets: tuple[str, ...], is_json: bool, config: Path | None) -> None:
    """Compare decisions with those that FILE expects; exit with 1 if one differs.

    FILE is TOML with one [[case]] per decision: tool, expect (allow, ask or deny), and optionally args,
    caller, session, attempt, rule (the rule that must decide) and name (of the case). A tool can also be
    mcp.resource:URI or mcp.prompt:NAME.
    """
    out = claim_stdout()
    try:
        dry = dry_run(settings_from(config, toolsets=toolsets))
        cases = list(_cases(file))
        verdicts = [_verdict(dry, case, place) for place, case in cases]
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    callers = dict.fromkeys(case.get("caller", ANONYMOUS.name) for _, case in cases)
    for warning in (*dry.warnings, *filter(None, map(dry.doubt_about, callers))):
        say(f"warning: {warning}")
    failed = sum(not verdict["ok"] for verdict in verdicts)
    print_data({"ok": not failed, "cases": verdicts}, list(map(_line, verdicts)), out, is_json=is_json)
    say(f"{len(verdicts) - failed} of {len(verdicts)} cases as expected")
    if failed:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _cases(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    from portbook.settings.toml_file import read_toml  # late: only here

    file = read_toml(path, str(path))
    cases = file.document.get("case")
    if not isinstance(cases, list) or file.document.keys() != {"case"}:
        raise BadSettings(
            f"{file.place(())}: must hold a list of cases, each started with [[case]], and nothing else"
        )
    for number, case in enumerate(cast("list[Any]", cases)):
        place = f"{path}:{file.line(('case', number))}"
        if not isinstance(case, dict):
            raise BadSettings(f"{place}: start each case with [[case]]")
        yield place, cast("dict[str, Any]", case)


def _verdict(dry: DryRun, case: dict[str, Any], place: str) -> dict[str, Any]:
    for name, value in case.items():
        if name not in _MEMBERS:
            hint = did_you_mean(name, _MEMBERS.keys(), f"use {', '.join(sorted(_MEMBERS))}")
            raise BadSettings(f"{place}: {name[:80]!r} is not part of a case; {hint}")
        kind, wanted = _MEMBERS[name]
        if type(value) is not kind:
            raise BadSettings(f"{place}: {name} must be {wanted}")
    if case.get("expect") not in tuple(Action):
        hint = did_you_mean(str(case.get("expect", "")), tuple(Action))
        raise BadSettings(f"{place}: expect must be one of {', '.join(Action)}{hint and f'; {hint}'}")
    named = dry.catalog.named(str(case.get("tool")))
    if named is None:
        hint = did_you_mean(str(case.get("tool", "")), dry.names(), "`portbook tools` lists what is served")
        raise BadSettings(f"{place}: no such tool; {hint}")
    tool, taken = named
    arguments = {**taken, **case.get("args", {})}
    given = {name: case[name] for name in ("caller", "attempt", "session") if name in case}
    try:
        decision = dry.decide(tool, arguments, **given)
    except NotJSON:
        raise BadSettings(f"{place}: args must be a table that JSON can hold") from None
    is_right = decision.action == case["expect"] and case.get("rule", decision.rule) == decision.rule
    return {
        "ok": is_right,
        "case": case.get("name", tool.spec.name),
        "place": place,
        "expected": case["expect"],
        "decision": decision.action.value,
        "rule": decision.rule,
        "rule_place": decision.place,
        **({} if is_right or "rule" not in case else {"expected_rule": case["rule"]}),
    }


def _line(verdict: dict[str, Any]) -> str:
    mark = click.style("ok    ", fg="green") if verdict["ok"] else click.style("FAILED", fg="red")
    got = f"{verdict['decision']} by {verdict['rule']} ({verdict['rule_place']})"
    rule = f" by {escaped(verdict['expected_rule'])}" if "expected_rule" in verdict else ""
    wanted = "" if verdict["ok"] else f", expected {verdict['expected']}{rule}"
    return f"{mark} {verdict['place']}: {escaped(verdict['case'])}: {got}{wanted}"


@command.command("diff")
@click.argument("old", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("new", type=click.Path(path_type=Path, dir_okay=False))
@click.option(
    "--audit",
    "log_dir",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    required=True,
    help="Folder of records, such as runs.",
)
@json_option()
def diff(old: Path, new: Path, *, log_dir: Path, is_json: bool) -> None:
    """Show decisions that differ between OLD and NEW, for recorded calls; exit with 1 if one differs.

    OLD and NEW are settings files. Records hold arguments only with [audit] arguments = true; without them a
    rule's `where` is unknown.
    """
    out = claim_stdout()
    try:
        calls = ReplayedCalls(_policy(old), _policy(new))
        for record in _records(log_dir):
            calls.add(record)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    data: dict[str, Any] = calls.as_data()
    print_data(data, list(map(_change, data["changes"])), out, is_json=is_json, is_ascii=True)
    say(f"{calls.replayed} recorded calls, {calls.changed} decided differently")
    if calls.undecided:
        say(f"{calls.undecided} undecided: their records lack the arguments that a rule checks")
    if calls.changed:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _policy(path: Path) -> Policy:
    return dry_run(settings_from(path)._replace(toolsets=(), docs_enabled=False)).policy


def _records(log_dir: Path) -> Iterator[JSONObject]:
    def on_bad(file: str, line: int) -> None:
        say(f"warning: {file}:{line}: not a record; skipped")

    for located in records_in(stream_folder(log_dir, EXECUTION_STREAM), on_bad):
        yield located.record


def _change(row: dict[str, Any]) -> str:
    old, new = row["old"], row["new"]
    calls = "1 call" if row["calls"] == 1 else f"{row['calls']} calls"
    why = f" by {new['rule']}" if new["rule"] else " (depends on the arguments)"
    return f"{row['tool']} by {escaped(row['caller'])}: {old['decision']} -> {new['decision']}{why}, {calls}"
