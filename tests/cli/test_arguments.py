"""Arguments from the command line: pairs, a document, or standard input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.portbook_process import TOOLSET, run


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
