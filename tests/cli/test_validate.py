"""`portbook validate`: which files are checked, by which schemas, and how a run of it looks."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from support.portbook_process import environment
from support.pseudo_terminal import on_a_terminal
from support.validated_folder import validate


def test_valid_files_are_quiet_and_the_status_is_0(folder: Path) -> None:
    done = validate(folder, "assets")
    assert (done.code, done.out, done.err) == (0, b"", "portbook: 1 file checked, all valid\n")


def test_a_schema_can_be_named_or_given_as_a_file(folder: Path) -> None:
    (folder / "assets/other.json").write_text('{"pitch": "x"}')
    for schema in ("tone", "schemas/tone.schema.json"):
        assert validate(folder, "--schema", schema, "assets/other.json").code == 1
    (folder / "lonely.schema.json").write_text('{"$ref": "schemas/tone.schema.json"}')
    assert (
        b"/pitch: expected number"
        in validate(folder, "--schema", "lonely.schema.json", "assets/other.json").out
    )
    misspelt = validate(folder, "--schema", "tome", "assets/other.json")
    assert (misspelt.code, "did you mean tone?" in misspelt.err) == (2, True)
    (folder / "broken.schema.json").write_text('{"type": 5}')
    broken = validate(folder, "--schema", "broken.schema.json", "assets/other.json")
    assert (broken.code, "broken.schema.json:1:" in broken.err and ": /type" in broken.err) == (2, True)


def test_a_folder_of_schemas_can_be_named(folder: Path) -> None:
    (folder / "portbook.toml").unlink()
    done = validate(folder, "assets")
    assert done.out.decode().startswith(
        "assets/tone.json:1:1: error: no folder of schemas is set; "
        "use --schemas, assets.schemas or SYN_SCHEMAS_DIR\n"
    )
    assert done.code == 2, "it was not checked"
    assert validate(folder, "--schemas", "schemas", "assets").code == 0


def many(folder: Path, count: int) -> None:
    for at in range(count):
        (folder / f"assets/{at:05}.json").write_text(
            json.dumps({"schema": "tone", "pitch": at if at % 100 else "x"})
        )


def test_many_files_are_shared_out_and_reported_in_their_order(folder: Path) -> None:
    many(folder, 1200)
    done = validate(folder, "--format", "json", "assets")
    files = json.loads(done.out)["files"]
    assert [file["file"] for file in files] == sorted(file["file"] for file in files)
    assert [file["file"] for file in files if not file["ok"]] == [
        f"assets/{at:05}.json" for at in range(0, 1200, 100)
    ]
    assert done.err == "portbook: 1,201 files checked, 12 not valid: 12 errors\n"


def test_a_bar_shows_how_far_it_has_come_on_a_terminal_and_nowhere_else(folder: Path) -> None:
    many(folder, 60)
    shown, _ = on_a_terminal(folder, "validate", "assets")
    assert re.search(r"checking .*61/61", shown)
    assert "checking" not in validate(folder, "assets").err


def test_watching_checks_again_when_a_file_changes(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "portbook", "validate", "--watch", "assets"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        assert process.stderr.readline() == "portbook: 1 file checked, all valid\n"
        assert process.stderr.readline() == "portbook: watching; Ctrl-C stops\n"
        (folder / "assets/tone.json").write_text('{"pitch": "high"}')
        line = process.stderr.readline()
        assert re.fullmatch(r"── \d\d:\d\d:\d\d assets/tone\.json ─{3,}\n", line)
        assert len(line) == 61
        assert process.stdout.readline() == "assets/tone.json:1:11: error: /pitch: expected number\n"
        assert process.stderr.readline() == "portbook: 1 file checked, 1 not valid: 1 error\n"
        (folder / "schemas/tone.schema.json").write_text("{}")
        assert re.match(r"── \d\d:\d\d:\d\d .*schemas/tone\.schema\.json ─", process.stderr.readline())
        assert process.stderr.readline() == "portbook: 1 file checked, all valid\n"
        process.send_signal(2)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()


def test_hidden_files_and_other_files_of_a_folder_are_left_out(folder: Path) -> None:
    (folder / "assets/.hidden.json").write_text("{")
    (folder / "assets/.git").mkdir()
    (folder / "assets/.git/x.json").write_text("{")
    (folder / "assets/notes.txt").write_text("{")
    assert validate(folder, "assets").code == 0
