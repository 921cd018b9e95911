"""Checkpoints of real processes: while they serve, when they end, after a kill, with pruned files."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from portbook.audit.chain import GENESIS
from portbook.audit.journal import chained
from support.audit_log import record
from support.portbook_process import SAMPLE_TOOLS, environment, http_server, invoke, over_stdio, run

CALL = invoke("echo", {"text": "hello"})
EVERY_SECOND = "[audit]\ncheckpoint_s = 1\n[docs]\nenabled = false\n"


def verified(folder: Path, code: int | None = 0) -> Any:
    found = run("audit", "verify", "--json", cwd=folder)
    assert code is None or found.code == code, (found.out, found.err)
    return found.answers[0]


def eventually(find: Callable[[], Any]) -> Any:
    """Return what `find` finds; long enough for a machine that does much else."""
    deadline = time.monotonic() + 60
    while not (found := find()):
        assert time.monotonic() < deadline, "never found"
        time.sleep(0.2)
    return found


def covered(folder: Path) -> Any:
    """Return the newest checkpoint, once it covers every record."""
    found = verified(folder)["checkpoints"]
    return found if found["newest"] and not found["uncovered"] else None


def newest_file(folder: Path) -> Path:
    return max((folder / "runs" / "mcp_server" / "execution").glob("*Z.*.jsonl"))


def without_last_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.covers("002.logging.checkpoints")
def test_a_server_covers_its_records_while_it_serves_and_a_killed_one_is_covered_by_the_next(
    tmp_path: Path,
) -> None:
    (tmp_path / "portbook.toml").write_text(EVERY_SECOND)
    with http_server(cwd=tmp_path) as server:
        assert server.rpc(CALL).status == 200
        first = eventually(lambda: covered(tmp_path))
        server.process.kill()
        server.process.wait()
    killed = newest_file(tmp_path)
    # What it would have left, had it been killed between a record and the checkpoint.
    lines = killed.read_bytes().splitlines(keepends=True)
    last = json.loads(lines[-1])
    body = b'{"' + lines[-1].partition(b'","')[2].rpartition(b',"hash":"')[0] + b"}"
    with killed.open("ab") as file:
        file.write(chained([body], last["seq"], last["hash"])[0])
    assert verified(tmp_path)["checkpoints"]["uncovered"] == 1
    with http_server(cwd=tmp_path) as server:
        second = eventually(lambda: covered(tmp_path))
        assert int(second["newest"].partition(":")[0]) > int(first["newest"].partition(":")[0])
        without_last_line(killed)
        broken = verified(tmp_path, 1)["streams"][0]["broken"]
        assert (broken["file"], broken["seq"]) == (killed.name, last["seq"] + 1)


@pytest.mark.covers("002.logging.checkpoint-at-the-end")
def test_a_command_covers_its_record_before_it_ends(tmp_path: Path) -> None:
    assert over_stdio(CALL, cwd=tmp_path).answers[0]["result"] == "hello"
    assert covered(tmp_path)
    without_last_line(newest_file(tmp_path))
    broken = verified(tmp_path, 1)["streams"][0]["broken"]
    assert (broken["problem"], broken["seq"]) == ("missing", 1)


@pytest.mark.covers("002.logging.pruning-recorded")
def test_pruned_files_are_no_break_and_a_checkpoint_says_which_they_were(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text("[audit]\nkeep = 2\n[docs]\nenabled = false\n")
    for _ in range(2):
        over_stdio(CALL, cwd=tmp_path)
    oldest = min((tmp_path / "runs" / "mcp_server" / "execution").glob("*Z.*.jsonl"))
    over_stdio(CALL, cwd=tmp_path)
    assert not oldest.exists()
    assert verified(tmp_path)["checkpoints"]["pruned"] is True
    exported = run("audit", "checkpoints", "--json", cwd=tmp_path).answers
    body = json.loads(exported[-1]["body"])
    assert [(each["stream"], each["file"]) for each in body["pruned"]] == [("execution", oldest.name)]
    assert (exported[0]["number"], body["from"]) == (2, 2)  # the first covered nothing else
    newest_file(tmp_path).unlink()
    assert verified(tmp_path, 1)["streams"][0]["broken"]["problem"] == "file_lost"


@pytest.mark.covers("002.logging.checkpoints-where-records-are")
def test_the_asset_adapter_makes_checkpoints_only_where_it_writes_records(tmp_path: Path) -> None:
    frame = b'{"tool":"list_schemas","params":{}}\n'

    def adapt(*options: str) -> None:
        command = [sys.executable, "-m", "mcp", *options]
        env = environment(MCP_READY_FILE="", MCP_ENDPOINT="stdio")
        done = subprocess.run(command, input=frame, capture_output=True, cwd=tmp_path, env=env, timeout=60)
        assert done.returncode == 0, done.stderr

    (tmp_path / "portbook.toml").write_text("[docs]\nenabled = false\n")
    adapt()
    assert not (tmp_path / "portbook.db").exists()
    adapt("--log-dir", "runs")
    assert covered(tmp_path)


@pytest.mark.covers("002.logging.old-records")
def test_records_of_the_first_version_stay_readable_and_are_covered_with_new_ones(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(EVERY_SECOND)
    folder = tmp_path / "runs" / "mcp_server" / "execution"
    folder.mkdir(parents=True)
    old = [json.dumps(record(number), separators=(",", ":")).encode() for number in (1, 2)]
    path = folder / "2026-01-02T03-04-00.000Z.old.jsonl"
    path.write_bytes(chained(old, 0, GENESIS)[0])
    with http_server(cwd=tmp_path) as server:
        assert server.rpc(CALL).status == 200
        eventually(lambda: covered(tmp_path))
    shown = run("audit", "tail", "--json", cwd=tmp_path).answers
    assert [each.get("record_version") for each in shown] == [None, None, 2]
    assert (
        run("audit", "show", shown[0]["request_id"], "--json", cwd=tmp_path).answers[0]["outcome"]
        == "success"
    )
    assert run("audit", "prove", shown[1]["request_id"], cwd=tmp_path).code == 0
    path.unlink()
    assert verified(tmp_path, 1)["whole"] is False


def test_a_store_that_cannot_be_used_is_told_once_and_records_are_written(tmp_path: Path) -> None:
    (tmp_path / "portbook.db").write_text("not a store")
    done = over_stdio(CALL, cwd=tmp_path)
    assert done.answers[0]["result"] == "hello"
    assert done.err.count("records are not covered by checkpoints") == 1
    assert len(newest_file(tmp_path).read_bytes().splitlines()) == 1


@pytest.mark.covers("002.logging.basis")
def test_a_record_names_what_decided_and_a_changed_policy_is_a_different_basis(tmp_path: Path) -> None:
    over_stdio(CALL, CALL, cwd=tmp_path)
    (tmp_path / "portbook.toml").write_text("[policy]\nmax_payload_bytes = 65536\n")
    over_stdio(CALL, cwd=tmp_path)
    before, again, after = (
        run("audit", "show", each["request_id"], "--json", cwd=tmp_path).answers[0]
        for each in run("audit", "tail", "--json", cwd=tmp_path).answers
    )
    assert before["basis"] == again["basis"]
    parts = {name for name, value in before["basis"].items() if after["basis"][name] != value}
    assert parts == {"basis", "policy_digest"}
    assert before["execution"][0]["record"]["basis"] == before["basis"]["basis"]


@pytest.mark.covers("002.logging.keyed-digests")
def test_who_has_the_audit_key_can_compare_arguments_and_results_and_nobody_else(tmp_path: Path) -> None:
    made = run("audit", "key", cwd=tmp_path)
    assert (tmp_path / "audit.key").stat().st_mode & 0o077 == 0
    (tmp_path / "portbook.toml").write_text('[audit]\nkey = "audit.key"\n')
    over_stdio(CALL, CALL, cwd=tmp_path)
    first, second = (each["hmac"] for each in run("audit", "tail", "--json", cwd=tmp_path).answers)
    assert first["key"] == made.answers[0]["key_id"]
    assert first["arguments"] != second["arguments"]  # equal values look different
    assert first["claims"] is None
    (tmp_path / "same.json").write_text('{ "text": "hello" }')
    (tmp_path / "result.json").write_text('"hello"')
    (tmp_path / "other.json").write_text('{"text":"hullo"}')
    same = run("audit", "match", "2", "--arguments", "same.json", "--result", "result.json", cwd=tmp_path)
    assert same.answers[0]["matches"] == {"arguments": True, "result": True}
    assert same.code == 0
    different = run("audit", "match", "2", "--arguments", "other.json", cwd=tmp_path)
    assert (different.code, different.answers[0]["matches"]) == (1, {"arguments": False})
    run("audit", "key", "second.key", cwd=tmp_path)
    foreign = run("audit", "match", "2", "--key", "second.key", "--arguments", "same.json", cwd=tmp_path)
    assert (foreign.code, first["key"] in foreign.err) == (1, True)


def test_several_writers_have_one_chain_of_checkpoints(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(EVERY_SECOND)
    with http_server(cwd=tmp_path) as one, http_server(cwd=tmp_path) as other:
        for server in (one, other):
            assert server.rpc(CALL).status == 200
        eventually(lambda: covered(tmp_path))
    with sqlite3.connect(tmp_path / "portbook.db") as connection:
        files = connection.execute("SELECT DISTINCT file FROM audit_segment").fetchall()
    connection.close()
    assert len(files) == 2
    assert verified(tmp_path)["checkpoints"]["whole"] is True


# `portbook` on a machine of this name.
MACHINE = """
import os, sys
from portbook.cli.main import main
name, real = sys.argv.pop(1), os.uname()
os.uname = lambda: os.uname_result((real.sysname, name, *real[2:]))
main()
"""


def on_machine(
    name: str, *arguments: str, cwd: Path, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", MACHINE, name, *arguments]
    return subprocess.run(
        command, input=stdin, capture_output=True, cwd=cwd, env=environment(), timeout=60, check=False
    )


@pytest.mark.covers("021.audit.same-path")
def test_machines_whose_folders_have_the_same_path_miss_only_records_of_their_own(
    tmp_path: Path, postgres_schema: str
) -> None:
    folder = tmp_path / "data"
    settings = f'[docs]\nenabled = false\n[store]\nurl = "{postgres_schema}"\n'

    def serve(name: str) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "portbook.toml").write_text(settings)
        options = ("serve", "--stdio", str(SAMPLE_TOOLS))
        done = on_machine(name, *options, cwd=folder, stdin=CALL + b"\n")
        assert json.loads(done.stdout)["result"] == "hello", done.stderr

    def verified_on(name: str) -> Any:
        return json.loads(on_machine(name, "audit", "verify", "--json", cwd=folder).stdout)

    serve("pod-a")
    folder.rename(tmp_path / "disk of pod-a")
    serve("pod-b")
    found = verified_on("pod-b")
    assert (found["whole"], found["checkpoints"]["uncovered"]) == (True, 0)
    # One that was renamed still knows what was covered of the files that it has.
    path = newest_file(folder)
    whole = path.read_bytes()
    without_last_line(path)
    assert verified_on("pod-c")["streams"][0]["broken"]["problem"] == "missing"
    path.unlink()
    assert verified_on("pod-b")["streams"][0]["broken"]["problem"] == "file_lost"
    path.write_bytes(whole)
    assert verified_on("pod-b")["whole"] is True


@pytest.mark.covers("021.audit.renamed-machine")
def test_a_machine_that_was_renamed_misses_files_covers_what_is_left_and_prunes(
    tmp_path: Path, postgres_schema: str
) -> None:
    settings = '[audit]\ncheckpoint_s = 1\nkeep = {}\n[docs]\nenabled = false\n[store]\nurl = "{}"\n'

    def serve(name: str, keep: int = 10) -> None:
        (tmp_path / "portbook.toml").write_text(settings.format(keep, postgres_schema))
        options = ("serve", "--stdio", str(SAMPLE_TOOLS))
        done = on_machine(name, *options, cwd=tmp_path, stdin=CALL + b"\n")
        assert json.loads(done.stdout)["result"] == "hello", done.stderr

    def verified_on(name: str) -> Any:
        return json.loads(on_machine(name, "audit", "verify", "--json", cwd=tmp_path).stdout)

    def checkpoints() -> list[Any]:
        printed = on_machine("pod-b", "audit", "checkpoints", cwd=tmp_path).stdout
        return [json.loads(line) for line in printed.splitlines()]

    serve("pod-a")
    serve("pod-a")
    path = newest_file(tmp_path)
    whole = path.read_bytes()
    path.unlink()
    for name in ("pod-a", "pod-b"):
        assert verified_on(name)["streams"][0]["broken"]["problem"] == "file_lost"
    # What it left uncovered under its old name is covered under the new one, and only once.
    last = json.loads(whole.splitlines()[-1])
    body = b'{"' + whole.splitlines()[-1].partition(b'","')[2].rpartition(b',"hash":"')[0] + b"}"
    path.write_bytes(whole + chained([body], last["seq"], last["hash"])[0])
    assert verified_on("pod-b")["checkpoints"]["uncovered"] == 1
    with subprocess.Popen(
        [sys.executable, "-c", MACHINE, "pod-b", "serve", "--stdio", str(SAMPLE_TOOLS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
        env=environment(),
    ) as serving:
        eventually(lambda: verified_on("pod-c")["checkpoints"]["uncovered"] == 0)
        serving.communicate(timeout=60)
    assert verified_on("pod-c")["whole"] is True
    covered = [
        (each["first"], each["last"])
        for one in checkpoints()
        for each in one["segments"]
        if each["file"] == path.name
    ]
    assert covered == [(1, last["seq"]), (last["seq"] + 1, last["seq"] + 1)]
    # Files of the old name that are pruned under the new one are not missed, and their checkpoints go.
    for _ in range(3):
        serve("pod-b", keep=1)
    found = verified_on("pod-c")
    assert (found["whole"], found["checkpoints"]["pruned"]) == (True, True)
    assert not [each for one in checkpoints() for each in one["segments"] if each["log"].startswith("pod-a:")]
