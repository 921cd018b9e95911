"""`portbook validate` and `portbook diff` on what others wrote: hostile names, links, pipes, endings."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook.cli import validate as verb
from support.portbook_process import PORTBOOK, Finished, child, environment, run

TONE = {
    "type": "object",
    "properties": {"pitch": {"type": "number"}},
    "additionalProperties": {"type": "string"},
}
FORMATS = ["text", "json", "github", "sarif"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/tone.schema.json").write_text(json.dumps(TONE))
    (tmp_path / "assets").mkdir()
    (tmp_path / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    return tmp_path


def validate(folder: Path, *arguments: str, stdin: bytes = b"") -> Finished:
    return run("validate", *arguments, cwd=folder, stdin=stdin)


# -- what schemas refer to


def refer(folder: Path, **schemas: Any) -> None:
    for name, schema in schemas.items():
        path = folder / "schemas" / f"{name.replace('_', '/')}.schema.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(schema))


def test_a_schema_of_the_library_is_checked_as_the_library_takes_it(folder: Path) -> None:
    refer(folder, a_p={"$ref": "../b/q.schema.json"}, b_q={"type": "integer"})
    done = validate(folder, "schemas")
    assert (done.code, done.out) == (0, b"")
    refer(folder, b_r={"type": "string"})
    path = "schemas/a/p.schema.json"
    assert run("diff", "--schema", path, path, cwd=folder).out == b'{"verdict":"compatible"}\n'
    (folder / "asset.json").write_text('"x"')
    assert b"expected integer" in validate(folder, "--schema", path, "asset.json").out


def test_what_is_wrong_with_another_schema_is_told_at_the_reference_to_it(folder: Path) -> None:
    refer(folder, z={"items": {"$ref": "y.schema.json"}}, y={"type": 5})
    done = validate(folder, "schemas/z.schema.json")
    (first, *_) = done.out.decode().splitlines()
    assert first.startswith("schemas/z.schema.json:1:20: error: /items/$ref: refers to y.schema.json, which ")
    assert "which cannot be used: /type: " in first
    assert done.code == 1
    warning = next(line for line in done.err.splitlines() if "z.schema.json" in line)
    assert "/items/$ref: refers to y.schema.json, which cannot be used: /type: " in warning
    assert str(folder) not in warning, "paths start in the current folder"
    assert warning.startswith("portbook: warning: schemas/z.schema.json: ")


# -- names that nobody should trust


@pytest.mark.parametrize("form", FORMATS)
def test_a_name_that_is_not_utf8_stops_nothing(form: str, folder: Path) -> None:
    path = os.fsencode(folder / "assets") + b"/tone.\xff.json"
    Path(os.fsdecode(path)).write_text('{"pitch": "x"}')
    (folder / "assets/zone.json").write_text('{"schema": "tone", "pitch": "x"}')
    (folder / "assets").joinpath(os.fsdecode(b"\xfe.json")).write_text("{}")
    done = validate(folder, "--format", form, "assets")
    assert (done.code, done.err) == (1, "portbook: 3 files checked, 3 not valid: 3 errors\n")
    shown = done.out.decode()
    assert "zone.json" in shown
    if form == "json":
        assert [file["file"] for file in json.loads(shown)["files"]] == [
            "assets/tone.\\xff.json",
            "assets/zone.json",
            "assets/\\xfe.json",
        ]
    elif form == "sarif":
        places = [
            result["locations"][0]["physicalLocation"] for result in json.loads(shown)["runs"][0]["results"]
        ]
        assert places[0]["artifactLocation"]["uri"] == "assets/tone.%FF.json"
    else:
        assert "assets/tone.\\udcff.json" in shown


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_of_a_file_starts_a_line_or_reaches_the_terminal(form: str, folder: Path) -> None:
    hostile = "a\n::error file=x::forged\r\x1b[31m\x9b\u2028\u202e\x7fb"
    (folder / "assets/tone.json").write_text(
        json.dumps({hostile: 1}, ensure_ascii=False).replace("\x7f", "\\u007f")
    )
    name = "n\n::error::x\x1b[31m\u2028.json"
    (folder / f"assets/{name}").write_text("{}")
    done = validate(folder, "--format", form, "assets")
    shown = done.out.decode()
    assert done.code == 1
    assert "[31m" in shown, "it is escaped, and not left out"
    for line in shown.splitlines():
        assert line.isprintable()
        assert form == "github" or not line.startswith("::")
    if form == "github":
        assert [line[:13] for line in shown.splitlines()] == ["::error file="] * 2
    if form == "json":
        files = json.loads(shown)["files"]
        assert {files[0]["file"], files[1]["file"]} == {"assets/tone.json", f"assets/{name}"}
        assert any(error["path"] == f"/{hostile}" for file in files for error in file["errors"])


def test_nothing_of_a_file_reaches_standard_error_either(folder: Path) -> None:
    (folder / "schemas/a\n\x1b[31m.schema.json").write_text('{"properties": {"x\\n\\u001b": {"type": 5}}}')
    (folder / "assets/tone.json").write_text("{}")
    done = validate(folder, "assets")
    assert done.code == 0
    (warning, _) = done.err.splitlines()
    assert "schemas/a\\n\\x1b[31m.schema.json: /properties/x\\n\\x1b/type: " in warning
    assert warning.isprintable()


def test_a_patch_says_the_same_and_shows_no_control_character(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    value = {"k\x9b\u2028": "\x7f\U000e0041é名"}
    (tmp_path / "b.json").write_text(json.dumps(value))
    done = run("diff", "a.json", "b.json", cwd=tmp_path)
    assert done.out.decode().removesuffix("\n").isprintable()
    assert "é名" in done.out.decode()
    assert json.loads(done.out) == [{"op": "add", "path": "/k\x9b\u2028", "value": "\x7f\U000e0041é名"}]


def test_the_caret_stands_under_the_value_whatever_stands_before_it(folder: Path) -> None:
    (folder / "assets/tone.json").write_text('{"名前e\u0301": "ok", "pitch": "高"}')
    (_, line, caret) = validate(folder, "assets").out.decode().splitlines()
    assert line == '  {"名前e\u0301": "ok", "pitch": "高"}'
    assert caret == " " * 27 + "^" * 4


# -- folders and links


def test_a_link_in_a_folder_leads_nowhere_outside_of_it(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret.json"
    secret.write_text("password = hunter2")
    (folder / "assets/tone.json").symlink_to(secret)
    (folder / "assets/inside.json").write_text('{"schema": "tone", "pitch": "x"}')
    (folder / "assets/zone.json").symlink_to("inside.json")
    done = validate(folder, "assets")
    shown = done.out.decode()
    assert done.code == 2
    assert "assets/tone.json: error: a link that points outside of its folder\n" in shown
    assert "hunter2" not in shown
    assert "assets/zone.json:1:29: error: /pitch: expected number" in shown
    secret.write_text('{"pitch": 1}')
    assert validate(folder, "assets/tone.json").code == 0, "a person may name a link"


def test_a_folder_without_files_is_no_success(folder: Path) -> None:
    done = validate(folder, "assets")
    assert (done.code, done.out) == (2, b"assets: error: the folder holds no .json file\n")


def test_a_folder_that_cannot_be_looked_into_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "assets/sub").mkdir()
    (folder / "assets/tone.json").write_text("{}")
    look = os.scandir

    def scandir(path: Any) -> Any:
        if os.fspath(path).endswith("sub"):
            raise PermissionError(13, "Permission denied", path)
        return look(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.chdir(folder)
    files = verb._files((Path("assets"),))
    assert [(file.path, file.problem) for file in files] == [
        ("assets/tone.json", ""),
        ("assets/sub", "the folder cannot be read: Permission denied"),
    ]
    report = verb.Checker(verb.load_library(folder / "schemas", None)).check(files[1])
    assert (report.is_checked, report.problems[0].message) == (
        False,
        "the folder cannot be read: Permission denied",
    )


# -- pipes


def test_standard_input_and_pipes_can_be_named(folder: Path) -> None:
    done = validate(folder, "--schema", "tone", "-", stdin=b'{"pitch": "x"}')
    assert (done.code, done.out.splitlines()[0]) == (1, b"-:1:11: error: /pitch: expected number")
    (folder / "a.json").write_text('{"a": 1}')
    done = run("diff", "a.json", "-", cwd=folder, stdin=b'{"a": 2}')
    assert (done.code, done.out) == (1, b'[{"op":"replace","path":"/a","value":2}]\n')
    assert run("diff", "-", "-", cwd=folder).code == 2
    command = f"{' '.join(PORTBOOK)} diff --schema <(echo '{{}}') <(echo '{{\"type\":\"null\"}}')"
    shell = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment(), capture_output=True, timeout=60
    )
    assert (shell.returncode, json.loads(shell.stdout)["verdict"]) == (1, "breaks"), shell.stderr


# -- endings


@pytest.mark.parametrize(
    "arguments", [("validate", "assets"), ("diff", "assets/tone.json", "schemas/tone.schema.json")]
)
def test_what_cannot_be_written_is_no_verdict(arguments: tuple[str, ...], folder: Path) -> None:
    (folder / "assets/tone.json").write_text('{"pitch": "x"}')
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*PORTBOOK, *arguments],
            cwd=folder,
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    assert done.returncode == 2
    assert done.stderr.decode().splitlines()[-1] == "portbook: error: No space left on device"


@pytest.mark.parametrize("arguments", [("validate", "assets"), ("diff", "assets/a.json", "assets/tone.json")])
def test_who_reads_no_further_ends_it_quietly(arguments: tuple[str, ...], folder: Path) -> None:
    (folder / "assets/tone.json").write_text('{"pitch": "x"}')
    (folder / "assets/a.json").write_text("{}")
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [*PORTBOOK, *arguments],
            cwd=folder,
            env=environment(),
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_defect_is_no_verdict(folder: Path) -> None:
    broken = (
        "import portbook.assets.validate_file as c; c.Checker.check = None; "
        "from portbook.cli.main import main; main()"
    )
    (folder / "assets/tone.json").write_text("{}")
    done = subprocess.run(
        [sys.executable, "-c", broken, "validate", "assets"],
        cwd=folder,
        env=environment(),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert b"TypeError" in done.stderr


def test_who_interrupts_it_has_no_verdict(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with child(
        [*PORTBOOK, "validate", "--schema", "tone", "pipe"], cwd=folder, stderr=subprocess.PIPE
    ) as process:
        with (folder / "pipe").open("wb"):  # opened once it reads
            assert _interrupted(process) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def _interrupted(process: subprocess.Popen[bytes]) -> int:
    """Interrupt a process until it ends: Python does not hear of a signal in the moment before it blocks."""
    for _ in range(30):
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(2)
    return process.wait(1)


def test_watching_outlives_a_schema_that_is_half_written(folder: Path) -> None:
    (folder / "assets/tone.json").write_text('{"pitch": 1}')
    (folder / "own").mkdir()
    (folder / "own/s.json").write_text('{"$ref": "t.json"}')
    (folder / "own/t.json").write_text("{}")
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "portbook", "validate", "--watch", "--schema", "own/s.json", "assets"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        assert process.stderr.readline() == "portbook: 1 file checked, all valid\n"
        assert process.stderr.readline() == "portbook: watching; Ctrl-C stops\n"
        (folder / "own/s.json").write_text("{")
        assert process.stderr.readline().startswith("──")
        assert process.stderr.readline().startswith("portbook: error: own/s.json:1:1: not JSON: ")
        (folder / "own/s.json").write_text('{ "$ref": "t.json" }')
        assert process.stderr.readline().startswith("──")
        assert process.stderr.readline() == "portbook: 1 file checked, all valid\n"
        (folder / "own/t.json").write_text('{"type": "null"}')
        assert process.stderr.readline().startswith("──")
        assert process.stderr.readline() == "portbook: 1 file checked, 1 not valid: 1 error\n"
    finally:
        process.kill()
        process.communicate()
