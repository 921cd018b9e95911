"""`--json` on each command that prints data: its errors are JSON, too. Each group knows the nearest verb."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from portbook.cli.main import CommandGroup, cli
from support.portbook_process import Finished, run

# A command line that fails, for each command that prints data.
BROKEN_SETTINGS = "[server]\nprot = 1\n"
FAILING: dict[str, tuple[str, ...]] = {
    "call": ("greet",),
    "check": (),
    "tools": (),
    "adopt": ("--file", "missing.json"),
    "upstreams": (),
    "upstreams restart": ("x",),
    "upstreams sandbox": ("x",),
    "fetch": ("shop",),
    "pin": (),
    "scan": (),
    "review": (),
    "explain": ("greet",),
    "policy test": ("cases.toml",),
    "policy diff": ("portbook.toml", "portbook.toml", "--log-dir", "."),
    "approvals": (),
    "approvals list": (),
    "approvals show": ("1",),
    "approvals approve": ("1",),
    "approvals deny": ("1",),
    "keys create": ("ada",),
    "keys list": (),
    "keys revoke": ("ada",),
    "keys signing": ("nowhere/signing.pem",),
    "store status": (),
    "store migrate": (),
    "store check": (),
    "store copy": ("portbook.toml",),
    "store restore": (),
    "audit verify": (),
    "audit tail": (),
    "audit show": ("1",),
    "audit export": (),
    "audit key": ("nowhere/audit.key",),
    "audit match": ("1", "--arguments", "missing.json"),
    "audit prove": ("1",),
    "audit verify-proof": ("missing.json",),
    "audit checkpoints": (),
    "schema show": ("2025-11-25",),
    "schema check": ("x.json", "--revision", "2025-11-24"),
    "validate": ("missing.json",),
    "diff": ("missing.json", "missing.json"),
    "wrap": ("--digests", "--input", "missing.txt", "--provenance", "minimal", "true"),
    "envelope check": ("missing.json",),
    "export client": ("cursor",),
    "export mcpb": ("--author", "Ada"),
    "export server.json": ("--name", "x", "--description", "x"),
}
# `doctor` tells of broken settings as one of its lines, beside all that works.
NO_ERRORS = {"doctor"}
# They print no data: a server, a file that is written, a script for a shell.
NO_DATA = {"serve", "init", "completion"}


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield the context of each command that does something by itself."""
    command = context.command
    if not isinstance(command, click.Group) or command.invoke_without_command:
        yield context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(click.Context(found, info_name=name, parent=context))


# With the settings of the program: click keeps the names of --help that it is first asked with.
ROOT = click.Context(cli, info_name="portbook", **cli.context_settings)
KNOWN = {
    context.command_path.removeprefix("portbook ").strip(): context.command for context in commands(ROOT)
}


def test_the_table_has_each_command() -> None:
    assert set(KNOWN) == {*FAILING, *NO_ERRORS, *NO_DATA}


@pytest.mark.parametrize("name", sorted({*FAILING, *NO_ERRORS}))
def test_each_command_that_prints_data_prints_json_on_request(name: str) -> None:
    assert "--json" in [option for each in KNOWN[name].params for option in each.opts]


@pytest.mark.covers("design.cli.json")
@pytest.mark.parametrize("name", FAILING)
def test_an_error_is_one_line_of_json_and_nothing_else_tells_it(name: str, tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(BROKEN_SETTINGS)
    finished = run(*name.split(), "--json", *FAILING[name], cwd=tmp_path)
    assert finished.code not in (0, None)
    [line] = finished.out.splitlines()
    said = json.loads(line)
    problems = said["errors"] if name == "check" else said["error"]["problems"]
    assert all(set(each) == {"file", "line", "column", "message"} for each in problems)
    assert problems
    assert "error" not in finished.err


@pytest.mark.parametrize("name", sorted({*FAILING, *NO_ERRORS}))
def test_a_mistake_in_the_command_line_is_one_line_of_json_too(name: str, tmp_path: Path) -> None:
    assert told_alone(run(*name.split(), "--json", "--no-such-option", cwd=tmp_path)) == 1


@pytest.mark.parametrize("name", FAILING)
def test_an_error_without_broken_settings_is_where_every_other_is(name: str, tmp_path: Path) -> None:
    """Names that are not there, files that are missing: whatever fails, all that is printed is JSON."""
    (tmp_path / "portbook.toml").write_text("[docs]\nenabled = false\n")
    finished = run(*name.split(), "--json", *FAILING[name], cwd=tmp_path)
    for line in finished.out.splitlines():
        json.loads(line)
    assert "portbook: error" not in finished.err
    if name in UNKNOWN:
        assert told_alone(finished) == 1


# Those of FAILING whose arguments name what is not there.
UNKNOWN = {
    "upstreams restart", "upstreams sandbox", "fetch", "explain", "policy test", "policy diff",
    "approvals show", "approvals approve", "approvals deny", "keys revoke", "keys signing", "audit show",
    "schema check", "diff", "wrap", "envelope check", "export server.json",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [each for each in FAILING if " " in each and KNOWN.get(each.split()[0]) is not None]
)
def test_json_that_is_asked_of_the_group_is_asked_of_its_verb(name: str, tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(BROKEN_SETTINGS)
    group, verb = name.split()
    assert told_alone(run(group, "--json", verb, *FAILING[name], cwd=tmp_path)) == 1


def test_the_doctor_tells_of_broken_settings_and_fails(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(BROKEN_SETTINGS)
    finished = run("doctor", "--json", cwd=tmp_path)
    [problem] = json.loads(finished.out)["settings"]
    assert (finished.code, problem[:22]) == (2, "portbook.toml:2:1: unk")


def told_alone(finished: Finished) -> int:
    """Return the number of problems; standard output has one line of JSON, and nothing else tells of them."""
    assert finished.code not in (0, None)
    [line] = finished.out.splitlines()
    problems = json.loads(line)["error"]["problems"]
    assert all(set(each) == {"file", "line", "column", "message"} for each in problems)
    assert "error" not in finished.err
    return len(problems)


def groups(command: click.Command, name: str) -> Iterator[tuple[str, click.Group]]:
    if isinstance(command, click.Group):
        yield name, command
        context = click.Context(command, parent=ROOT)
        for verb in command.list_commands(context):
            found = command.get_command(context, verb)
            assert found is not None
            yield from groups(found, f"{name} {verb}".strip())


@pytest.mark.parametrize(("name", "group"), list(groups(cli, "")))
def test_a_misspelt_verb_of_each_group_is_answered_with_the_nearest(
    name: str, group: click.Group, tmp_path: Path
) -> None:
    assert isinstance(group, CommandGroup)
    verb = max(group.list_commands(click.Context(group, parent=ROOT)), key=len)
    misspelt = f"{verb[:-1]}q"
    finished = run(*name.split(), misspelt, cwd=tmp_path)
    assert (finished.code, f"did you mean {verb}?" in finished.err) == (2, True), finished.err
