"""Arguments from the command line: pairs, a document, or standard input."""

from __future__ import annotations

import json
import os
import pty
import signal
import time
from pathlib import Path

import pytest

from support.portbook_process import PORTBOOK, TOOLSET, child, run
from support.pseudo_terminal import on_a_terminal


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
    assert "see `portbook call --help`" in finished.err


def test_a_value_or_the_whole_comes_from_a_file_or_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("from a file")
    (tmp_path / "all.json").write_text('{"text": "all of it"}')
    assert run("call", "echo", "text=@text.txt", *TOOLSET, cwd=tmp_path).out == b'"from a file"\n'
    assert run("call", "echo", "--input", "@all.json", *TOOLSET, cwd=tmp_path).out == b'"all of it"\n'
    assert run("call", "echo", "text=-", *TOOLSET, stdin=b"piped", cwd=tmp_path).out == b'"piped"\n'
    assert run("call", "echo", "text=@@ada", *TOOLSET, cwd=tmp_path).out == b'"@ada"\n'


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "text=@none.txt",
            "text: none.txt: No such file or directory; write @@ for a value",
        ),
        ("text=@binary", "text: not UTF-8; a tool takes binary data as base64"),
        ("other={broken", "other: not JSON: "),
    ],
)
def test_a_value_that_cannot_be_had_is_told_with_its_name(given: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    finished = run("call", "echo", given, *TOOLSET, cwd=tmp_path)
    assert finished.code == 2
    assert finished.err.startswith(f"portbook: error: {said}")


def test_standard_input_is_not_read_twice(tmp_path: Path) -> None:
    for twice in (("text=-", "more=-"), ("text=-", "--input", "-")):
        finished = run("call", "echo", *twice, *TOOLSET, stdin=b"piped", cwd=tmp_path)
        assert finished.code == 2
        assert "standard input can be read once; write - once, and @FILE for the rest" in finished.err


def test_a_person_at_a_terminal_is_asked_for_what_is_missing(tmp_path: Path) -> None:
    shown, code = on_a_terminal(tmp_path, "call", "echo", *TOOLSET, typed="from a person\n")
    assert code == 0
    assert "text (string): " in shown
    assert '"from a person"' in shown


def is_asleep(process: int) -> bool:
    """Whether its main thread waits for something, and is not about to."""
    stat = Path(f"/proc/{process}/stat").read_text()
    return stat.rpartition(")")[2].split()[0] == "S"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="tells a process that waits by /proc")
def test_one_ctrl_c_at_a_question_ends_the_command(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*PORTBOOK, "call", "echo", *TOOLSET]
    with child(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path) as process:
        os.close(theirs)
        shown = b""
        while b"text (string): " not in shown:
            shown += os.read(ours, 65536)
        # A signal between the question and the read is noticed only after the read: Python itself has no
        # remedy, and no person is so quick.
        while not all(is_asleep(process.pid) for _ in range(10)):
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        os.close(ours)
