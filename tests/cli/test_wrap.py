"""`portbook wrap`: any program, its output in an envelope, its exit status kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook import SigningKey, inspect_envelope, wrap
from portbook.canonical import digest
from portbook.provenance.artifacts import Digest, artifact_of
from support.portbook_process import PORTBOOK, child, environment, run

KEY = SigningKey(bytes(range(32)))


def wrapped(*arguments: str, cwd: Path, stdin: bytes = b"") -> tuple[int, Any, str]:
    finished = run("wrap", *arguments, cwd=cwd, stdin=stdin)
    [envelope] = finished.answers
    assert inspect_envelope(envelope).findings == ()
    return finished.code, envelope, finished.err


@pytest.mark.parametrize(
    ("arguments", "result"),
    [
        (("--", "echo", "done"), "done\n"),
        (("echo", "-n", "done"), "done"),
        (("--", "printf", '{"b": [1, 2.5], "a": null}'), {"b": [1, 2.5], "a": None}),
        (("--", "printf", "1.50"), "1.50"),
        (("--json", "--", "printf", "1.50"), 1.5),
        (("--text", "--", "printf", "{}"), "{}"),
        (("--", "true"), ""),
    ],
)
def test_what_a_program_prints_is_the_result(arguments: tuple[str, ...], result: Any, tmp_path: Path) -> None:
    assert wrapped(*arguments, cwd=tmp_path) == (0, wrap(result), "")


def test_a_program_reads_our_standard_input(tmp_path: Path) -> None:
    assert wrapped("--", "cat", cwd=tmp_path, stdin=b'["through"]')[1]["result"] == ["through"]


def test_a_failure_keeps_its_output_its_words_and_its_exit_status(tmp_path: Path) -> None:
    script = "echo half; echo oops >&2; exit 7"
    code, envelope, err = wrapped("--", "sh", "-c", script, cwd=tmp_path)
    assert (code, err) == (7, "oops\n")
    assert envelope == {
        "schema_version": "mcp.envelope.v0.1",
        "result": "half\n",
        "errors": [
            {
                "code": "ADAPTER.EXECUTION.FAILED",
                "message": "Tool execution failed with exit code 7.",
                "details": {"exit_code": 7, "stderr": "oops\n"},
            }
        ],
        "provenance": None,
    }


def test_a_programs_own_codes_are_preferred(tmp_path: Path) -> None:
    script = """echo '{"error": {"code": "ORDERS.CLOSED", "message": "Closed."}}' >&2; exit 1"""
    code, envelope, _ = wrapped("--", "sh", "-c", script, cwd=tmp_path)
    assert (code, envelope["errors"]) == (1, [{"code": "ORDERS.CLOSED", "message": "Closed."}])


@pytest.mark.parametrize(
    ("program", "code", "message"),
    [
        (("./no-such-program",), 127, "The program could not be started: No such file or directory."),
        (("/",), 126, "The program could not be started: Permission denied."),
        (("sh", "-c", "kill -KILL $$"), 137, "Tool execution was ended by signal 9."),
    ],
)
def test_a_program_that_cannot_start_or_is_ended_is_a_failure_too(
    program: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    found, envelope, _ = wrapped("--", *program, cwd=tmp_path)
    assert (found, envelope["result"]) == (code, None)
    assert [error["message"] for error in envelope["errors"]] == [message]


def test_a_record_names_the_program_its_words_and_its_files(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text('{"b": 1.0, "a": 2}')
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "notes.txt").write_text("one\n")
    files = [option for name in ("in.json", "broken.json", "notes.txt") for option in ("--input", name)]
    options = ("--provenance", "full", "--parent", "run-0", "--tool-version", "8.32")
    _, envelope, _ = wrapped(*options, *files, "--", "cat", "notes.txt", cwd=tmp_path)
    record = envelope["provenance"]
    assert record["tool"] == {"name": "cat", "version": "8.32", "adapter": "portbook"}
    assert record["parents"] == ["run-0"]
    found = {item["artifact_id"]: item for item in record["inputs"]}
    assert found["arguments"]["digest"]["value"] == digest(["cat", "notes.txt"])
    assert found["in.json"]["digest"]["value"] == digest({"a": 2, "b": 1})
    assert found["in.json"]["locator"] == "in.json"
    assert found["broken.json"]["media_type"] == "application/octet-stream"
    assert found["notes.txt"]["digest"] == record["outputs"][0]["digest"]
    assert found["program"]["size_bytes"] > 1000


def test_a_record_can_do_without_digests(tmp_path: Path) -> None:
    _, envelope, _ = wrapped("--provenance", "minimal", "--no-digests", "--", "echo", cwd=tmp_path)
    record = envelope["provenance"]
    assert [("digest" in item) for item in (*record["inputs"], *record["outputs"])] == [False, False]


def test_the_same_run_twice_is_the_same_bytes_unless_times_are_asked_for(tmp_path: Path) -> None:
    options = ("wrap", "--provenance", "minimal")
    first, second = (run(*options, "--", "echo", "x", cwd=tmp_path).out for _ in range(2))
    assert first == second
    timed = json.loads(run(*options, "--times", "--", "echo", "x", cwd=tmp_path).out)
    assert timed["provenance"]["time"].endswith("Z")
    assert timed["meta"].keys() == {"adapter", "duration_ms"}


def test_an_envelope_can_be_signed(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(KEY.to_pem())
    options = ("--provenance", "minimal", "--signing-key", "key.pem")
    _, envelope, _ = wrapped(*options, "--", "echo", "x", cwd=tmp_path)
    assert inspect_envelope(envelope, keys=[KEY.public]).is_sound


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "missing argument"),
        (("--signing-key", "k", "--", "true"), "--signing-key signs a record; add --provenance minimal"),
        (("--provenance", "most", "--", "true"), "is not one of 'minimal', 'full'"),
        (("--tool-version", "", "--", "true"), "version: must have 1 to 100 characters"),
        (("--input", "gone", "--", "true"), "gone: No such file or directory"),
        (("--provenance", "full", "--signing-key", "gone", "--", "true"), "gone: No such file or directory"),
    ],
)
def test_a_mistake_runs_nothing(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    finished = run("wrap", *arguments, cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert said in finished.err


def test_bytes_that_are_no_text_survive_as_base64(tmp_path: Path) -> None:
    _, envelope, _ = wrapped("--provenance", "minimal", "--", "printf", r"\377\000", cwd=tmp_path)
    assert envelope["result"] == "/wA="
    assert [warning["code"] for warning in envelope["warnings"]] == ["ADAPTER.OUTPUT.BASE64"]
    assert envelope["provenance"]["outputs"][0]["digest"] == _digest("/wA=")


def _digest(text: str) -> Any:
    made = artifact_of("x", text, is_digested=True).digest
    assert isinstance(made, Digest)
    return made.to_json()


def test_words_that_are_no_text_are_still_words(tmp_path: Path) -> None:
    done = subprocess.run(
        [*PORTBOOK, "wrap", "--provenance", "minimal", "--", "printf", "%s", b"\xff"],
        capture_output=True,
        cwd=tmp_path,
        env=environment(),
    )
    assert inspect_envelope(json.loads(done.stdout)).is_sound


def test_a_program_that_prints_without_end_is_ended(tmp_path: Path) -> None:
    script = "import portbook.cli.wrap as wrap; wrap.MAX_OUTPUT_BYTES = 1000; wrap.command()"
    done = subprocess.run(
        [sys.executable, "-c", script, "--", "yes"],
        capture_output=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
    )
    envelope = json.loads(done.stdout)
    assert done.returncode == 137
    assert envelope["result"] == "y\n" * 500
    assert [error["code"] for error in envelope["errors"]] == ["ADAPTER.OUTPUT.TOO_LARGE"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_the_program_and_the_envelope_says_so(number: signal.Signals, tmp_path: Path) -> None:
    with child(
        [*PORTBOOK, "wrap", "--", "sh", "-c", "echo started >&2; exec sleep 60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"started\n"
        if number is signal.SIGINT:
            os.killpg(process.pid, number)  # as a terminal does
        else:
            process.send_signal(number)
        out, _ = process.communicate(timeout=30)
        assert process.returncode == 128 + number
    assert json.loads(out)["errors"][0]["details"]["signal"] == number
