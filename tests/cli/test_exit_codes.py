"""Exit codes: one table, and no number beside it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import portbook.cli
from portbook.cli.exit_codes import ExitCode, exit_code_of_program
from portbook.errors import REASONS, Reason

FOLDER = Path(portbook.cli.__file__).parent
EXITS = {"Exit", "SystemExit", "_exit", "exit"}


def literal_exit_codes(source: str) -> list[int]:
    """Return the lines on which something exits with a number that is written there."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", ""))
        in EXITS
        and any(isinstance(part, ast.Constant) for argument in node.args for part in ast.walk(argument))
    ]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_no_module_of_the_command_line_writes_an_exit_code_itself(path: Path) -> None:
    assert literal_exit_codes(path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "raise click.exceptions.Exit(1)",
        "sys.exit(2)",
        "os._exit(0)",
        "raise SystemExit(3)",
        "ctx.exit(4)",
        "raise Exit(0 if ok else 1)",
        "sys.exit('no')",
    ],
)
def test_a_number_that_is_written_where_something_exits_is_found(source: str) -> None:
    assert literal_exit_codes(source) == [1]


def test_every_reason_exits_with_a_code_of_the_table() -> None:
    assert {row.exit for row in REASONS.values()} <= set(ExitCode)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.BAD_ARGUMENTS, ExitCode.INVALID),
        (Reason.UNAUTHORIZED, ExitCode.REFUSED),
        (Reason.POLICY_VIOLATION, ExitCode.REFUSED),
        (Reason.UNKNOWN_TOOL, ExitCode.UNKNOWN),
        (Reason.BAD_RESULT, ExitCode.INVALID_OUTPUT),
        (Reason.TOOL_FAILED, ExitCode.FAILURE),
    ],
)
def test_a_reason_exits_with_the_code_that_means_it(reason: Reason, code: ExitCode) -> None:
    assert REASONS[reason].exit == code


def test_the_codes_are_those_that_scripts_rely_on() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "SUCCESS": 0,
        "FAILURE": 1,
        "INVALID": 2,
        "REFUSED": 3,
        "UNKNOWN": 4,
        "INVALID_OUTPUT": 5,
        "CANNOT_START": 126,
        "NOT_FOUND": 127,
        "INTERRUPTED": 130,
        "PIPE_CLOSED": 141,
        "TERMINATED": 143,
    }
    assert len(ExitCode.__members__) == len(ExitCode), "one number has one name"
    assert all(code.meaning.endswith(".") for code in ExitCode)


@pytest.mark.parametrize(("status", "code"), [(0, 0), (7, 7), (-9, 137), (-15, 143)])
def test_a_program_that_a_signal_ended_has_the_code_that_a_shell_gives_it(status: int, code: int) -> None:
    assert exit_code_of_program(status) == code
