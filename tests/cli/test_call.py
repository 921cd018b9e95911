from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from harness import PORTBOOK, SAMPLE_TOOLS, environment, records, run

TOOLSET = ("--toolset", str(SAMPLE_TOOLS))


def test_docs_search_shows_something_real_with_no_configuration(tmp_path: Path) -> None:
    finished = run("call", "docs.search", "query=boundary", cwd=tmp_path)
    result = json.loads(finished.out)
    assert finished.code == 0
    assert result["total"] >= 1
    assert result["hits"][0]["rank"] == 1
    assert result["hits"][0]["document"]["sourcePath"].endswith(".md")


def test_a_call_from_the_command_line_is_recorded_like_any_other(tmp_path: Path) -> None:
    run("call", "echo", "text=hello", *TOOLSET, cwd=tmp_path)
    (record,) = records(tmp_path / "runs")
    assert (record["transport"], record["route"], record["status"]) == ("cli", "call", "ok")


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("echo",), 2, '(root): missing property "text"'),
        (("echo", "text=x", "more=1"), 2, 'unexpected property "more"'),
        (("no_such_tool",), 4, "`portbook tools` lists"),
        (("mcp.tool:wrong_result",), 5, "expected integer"),
        (("raising", "text=secret-value"), 1, "ValueError at sample_tools.py:"),
        (("NotASlug",), 2, "cannot be a tool's name"),
        (("ecko",), 4, "did you mean echo?"),
    ],
)
def test_an_ending_without_a_result_is_explained_and_has_its_exit_status(
    tmp_path: Path, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    finished = run("call", *arguments, *TOOLSET, cwd=tmp_path)
    assert finished.code == code
    assert finished.out == b""
    assert sentence in finished.err
    assert "secret-value" not in finished.err
    assert "Traceback" not in finished.err


def test_what_a_tool_prints_stays_away_from_its_result(tmp_path: Path) -> None:
    finished = run("call", "printing", *TOOLSET, cwd=tmp_path)
    assert finished.out == b'""\n'
    assert "noise from a child" in finished.err


def test_errors_are_data_on_stdout_with_json(tmp_path: Path) -> None:
    finished = run("call", "echo", "--json", *TOOLSET, cwd=tmp_path)
    error = json.loads(finished.out)["error"]
    assert (finished.code, error["canonical_code"], error["reason"]) == (2, "INVALID_INPUT", "BAD_ARGUMENTS")
    assert error["violations"][0]["message"] == 'missing property "text"'


def test_a_value_is_text_where_the_schema_wants_text_and_json_elsewhere(tmp_path: Path) -> None:
    finished = run("call", "echo", "text=5", *TOOLSET, cwd=tmp_path)
    assert json.loads(finished.out) == "5"
    finished = run("call", "docs.search", "query=7", "topK=1", cwd=tmp_path)
    assert json.loads(finished.out)["query"] == "7"


def test_arguments_come_as_a_document_or_from_standard_input(tmp_path: Path) -> None:
    assert run("call", "echo", "--input", '{"text":"a"}', *TOOLSET, cwd=tmp_path).out == b'"a"\n'
    assert run("call", "echo", "--input", "-", *TOOLSET, stdin=b'{"text":"b"}', cwd=tmp_path).out == b'"b"\n'


@pytest.mark.parametrize("arguments", [("text",), ("--input", "nonsense"), ("--input", "[]")])
def test_arguments_that_cannot_be_read_are_a_usage_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    finished = run("call", "echo", *arguments, *TOOLSET, cwd=tmp_path)
    assert finished.code == 2
    assert "Usage: portbook call" in finished.err


def test_a_terminal_gets_json_to_read(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    done = subprocess.run(
        [*PORTBOOK, "call", "docs.search", "query=boundary"], stdout=terminal, cwd=tmp_path, env=environment()
    )
    os.close(terminal)
    shown = os.read(controller, 65536)
    os.close(controller)
    assert done.returncode == 0
    assert shown.startswith(b'{\r\n  "query": "boundary"')
