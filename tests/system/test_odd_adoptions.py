"""`portbook adopt` with entries, files and homes that people really have, and that few expect."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from portbook.sandbox.confined_command import problem_of_system
from support.client_home import ClientHome, read_as_client
from support.portbook_process import environment

SETTINGS: Final = ".config/portbook/portbook.toml"
NEEDS_LANDLOCK: Final = pytest.mark.skipif(problem_of_system() is not None, reason=str(problem_of_system()))

# As on a full disk: there is room for all files but the last.
FULL_DISK: Final = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))"
# As Ctrl-C while the last file is replaced.
INTERRUPT: Final = (
    "import os, signal; real = os.replace; os.replace = lambda a, b: "
    "signal.raise_signal(signal.SIGINT) if str(b).endswith('config.toml') else real(a, b)"
)


def cursor_home(path: Path, servers: dict[str, Any]) -> tuple[ClientHome, Path]:
    """Return a home where Cursor has these servers, each with members that replace those of a working one."""
    home = ClientHome(path, "cursor")
    file = home.file(home.clients[0])
    working: dict[str, Any] = {**home.entry(home.clients[0]), "env": {}}
    whole = {name: {**working, **each} for name, each in servers.items()}
    file.write_text(json.dumps({"mcpServers": whole}))
    return home, file


def started(first: str, *options: str, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a Python that has run a statement first."""
    whole = f"{first}; import runpy; runpy.run_module('portbook', run_name='__main__')"
    return subprocess.run(
        [sys.executable, "-c", whole, "adopt", *options],
        env=env,
        capture_output=True,
        check=False,
        timeout=60,
    )


@pytest.mark.covers("adopt.variables")
def test_variables_that_change_portbook_itself_reach_their_server_alone(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "click.py").write_text("raise SystemExit('this is the wrong click')\n")
    path = os.environ["PATH"]
    own = {"PYTHONPATH": str(trap), "HOME": str(trap), "PATH": path, "https_proxy": "x", "A": "b"}
    home, file = cursor_home(tmp_path, {"files": {"env": own}, "portbook": {"env": {"LANG": "x"}}})
    assert home.adopt("--yes").code == 0
    entry = read_as_client(home.clients[0], file)["portbook"]
    assert entry["env"] == {
        "FILES_PYTHONPATH": str(trap),
        "FILES_HOME": str(trap),
        "FILES_PATH": path,
        "FILES_https_proxy": "x",
        "A": "b",
        "ADOPTED_PORTBOOK_LANG": "x",
    }
    table = tomllib.loads((tmp_path / SETTINGS).read_text())["mcp"]["files"]
    assert table["env"]["PYTHONPATH"]["env"] == "FILES_PYTHONPATH"
    served = subprocess.run(
        [entry["command"], *entry["args"]],
        input=b"",
        env={**environment(), **entry["env"]},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (served.returncode, b"wrong click" in served.stderr) == (0, False), served.stderr


@pytest.mark.covers("adopt.masked")
def test_secrets_among_arguments_are_counted_and_never_printed(tmp_path: Path) -> None:
    home, _ = cursor_home(
        tmp_path,
        {
            "after": {"args": ["--api-key", "hunter2hunter2"]},
            "within": {"args": ["--password=S3cr3t-pa55", "--port", "80"]},
        },
    )
    told = home.adopt("--dry-run", "--json")
    found = {each["name"]: each for each in json.loads(told.out)["servers"]}
    assert {name: each["secrets"] for name, each in found.items()} == {"after": 1, "within": 1}
    assert found["after"]["starts"].endswith(" --api-key [redacted]")
    assert found["within"]["starts"].endswith(" --password=[redacted] --port 80")
    shown = home.adopt("--dry-run")
    assert "2 secrets in the clear" in shown.err
    for text in (told.out.decode(), told.err, shown.out.decode(), shown.err):
        assert "hunter2" not in text
        assert "S3cr3t" not in text


@NEEDS_LANDLOCK
@pytest.mark.covers("adopt.replaced-data")
def test_a_confined_server_can_replace_the_file_that_its_variable_names(tmp_path: Path) -> None:
    data = tmp_path / "data" / "memory.json"
    data.parent.mkdir()
    data.write_text("{}")
    home, _ = cursor_home(tmp_path, {"memory": {"env": {"MEMORY_FILE_PATH": str(data)}}})
    assert home.adopt("--sandbox", "--yes").code == 0
    sandbox = tomllib.loads((tmp_path / SETTINGS).read_text())["mcp"]["memory"]["sandbox"]
    assert str(data.parent) in sandbox["write"], "a new file beside it takes its place"


@contextmanager
def locked(folder: Path) -> Generator[None]:
    """Make a folder one that nothing can be written into, not even by the system's own user."""
    is_root = os.geteuid() == 0
    lock, free = (["chattr", "+i"], ["chattr", "-i"]) if is_root else (["chmod", "500"], ["chmod", "700"])
    done = subprocess.run([*lock, str(folder)], check=False, capture_output=True, timeout=60)
    if done.returncode:
        pytest.skip("this file system has no folders that cannot be written")
    try:
        yield
    finally:
        subprocess.run([*free, str(folder)], check=True, timeout=60)


@pytest.mark.covers("adopt.unwritable")
def test_a_client_whose_folder_cannot_be_written_is_left_and_the_others_are_adopted(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor", "codex")
    cursor, codex = (home.file(client) for client in home.clients)
    with locked(cursor.parent):
        done = home.adopt("--yes")
    assert done.code == 0, done.err
    assert b"left in place: its folder cannot be written" in done.out
    assert b"portbook" not in cursor.read_bytes()
    assert b"portbook" in codex.read_bytes()


@pytest.mark.parametrize(("first", "code"), [(FULL_DISK, 2), (INTERRUPT, 130)], ids=["full", "interrupt"])
def test_an_adoption_that_stops_in_the_middle_says_what_is_changed_and_how_it_is_given_back(
    tmp_path: Path, first: str, code: int
) -> None:
    home = ClientHome(tmp_path, "cursor", "codex")
    codex = home.file(home.clients[1])
    codex.write_text(codex.read_text() + f"# {'long ' * 100_000}\n")
    before = home.contents()
    done = started(first, "--yes", env={**environment(), "HOME": str(tmp_path)})
    assert done.returncode == code
    assert b"3 of 4 files were changed; `portbook adopt --undo` gives them back" in done.stderr
    assert home.adopt("--undo").code == 0
    assert home.contents() == before


def test_links_in_a_circle_are_left_alone(tmp_path: Path) -> None:
    home = ClientHome(tmp_path, "cursor", "codex")
    cursor, codex = (home.file(client) for client in home.clients)
    cursor.unlink()
    cursor.symlink_to(cursor.name)
    done = home.adopt("--yes")
    assert (done.code, "Traceback" in done.err) == (0, False)
    assert f"{cursor} is left alone: " in done.err
    assert b"portbook" in codex.read_bytes()


def test_without_a_home_the_command_says_what_to_name(tmp_path: Path) -> None:
    # A user whom the system does not know, as in a container that runs under any number.
    unknown = "import os; os.getuid = lambda: 54321"
    env = {name: value for name, value in environment().items() if name != "HOME"}
    for options in ((), ("--into", str(tmp_path))):
        done = started(unknown, "--dry-run", *options, env=env)
        assert (done.returncode, b"Traceback" in done.stderr) == (2, False), done.stderr
        assert b"set HOME, or name files with --file and the folder with --into" in done.stderr


def test_a_name_that_no_server_has_is_an_error_with_the_names_found(tmp_path: Path) -> None:
    home, file = cursor_home(tmp_path, {"My Files": {}})
    before = file.read_bytes()
    wrong = home.adopt("--yes", "--server", "files")
    assert (wrong.code, file.read_bytes()) == (2, before)
    assert '--server: no server is called "files"; found: My Files' in wrong.err
    assert home.adopt("--yes", "--server", "My Files").code == 0
    again = home.adopt("--yes", "--server", "My Files")
    assert (again.code, "there is nothing new to adopt" in again.err) == (0, True)


def test_characters_that_cannot_be_passed_on_are_a_reason_and_no_defect(tmp_path: Path) -> None:
    home, file = cursor_home(
        tmp_path,
        {
            "half": {"args": ["\ud83d"]},
            "zero": {"args": ["a\0"]},
            "folder": {"cwd": "/tmp\0"},
            "variable": {"env": {"A": "\ud800"}},
            "\ud83d name": {"disabled": True},
            "good": {},
        },
    )
    done = home.adopt("--yes")
    assert (done.code, "Traceback" in done.err) == (0, False), done.err
    assert done.out.count(b"left in place: it has a character that cannot be passed on") == 4
    assert "portbook" in read_as_client(home.clients[0], file)
    assert home.adopt("--dry-run", "--json").code == 0


def test_notes_say_what_a_server_is_called_now_and_hide_what_its_variables_have(tmp_path: Path) -> None:
    talks = "import os, sys; sys.exit('no entry with ' + os.environ['LOGIN'])"
    home, _ = cursor_home(
        tmp_path,
        {
            "My Files": {},
            "files": {"env": {"A": "b"}},
            "talks": {"args": ["-c", talks], "env": {"LOGIN": "letmein"}},
        },
    )
    done = home.adopt("--dry-run")
    lines = done.out.decode().splitlines()
    notes = {line.split("  ")[1]: line for line in lines if line.startswith("Cursor")}
    assert notes["My Files"].endswith("becomes my_files")
    assert "becomes" not in notes["files"]
    assert "no entry with [redacted]" in notes["talks"]


@NEEDS_LANDLOCK
def test_a_missing_program_is_named_in_a_trial_too(tmp_path: Path) -> None:
    home, _ = cursor_home(tmp_path, {"gone": {"command": "/no/such/program", "args": []}})
    assert b"/no/such/program cannot be started: No such file" in home.adopt("--sandbox", "--dry-run").out
