"""The sandbox that is proposed from what a server touched."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.proposal import Touched, propose, read_notes, sandbox_line


def proposed(touched: Touched, folder: Path, *arguments: str) -> DeclaredSandbox:
    return propose(touched, ("/bin/sh", *arguments), {"PATH": "/bin"}, folder)


def test_notes_are_collected() -> None:
    lines = [["read", "/a"], ["write", "/b"], ["connect", 443], ["socket", "/s"], ["memory_bytes", 5]]
    found = read_notes("\n".join(map(json.dumps, [*lines, ["memory_bytes", 9]])))
    assert found == Touched(frozenset({"/a"}), frozenset({"/b"}), frozenset({443}), frozenset({"/s"}), 9, 0)
    assert read_notes("") == Touched()


def test_a_file_is_granted_with_its_folder_and_folders_within_another_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "data" / "inner").mkdir(parents=True)
    read = frozenset(map(str, (tmp_path / "data" / "a", tmp_path / "data" / "inner" / "b")))
    assert proposed(Touched(read=read), tmp_path).read == (tmp_path / "data",)


def test_of_a_wide_folder_only_the_file_is_granted() -> None:
    found = proposed(Touched(read=frozenset({"/etc/machine-id", str(Path.home() / "key")})), Path("/srv/x"))
    assert found.read == tuple(sorted((Path("/etc/machine-id"), Path.home() / "key")))


def test_packages_are_granted_whole() -> None:
    path = "/data/app/node_modules/deep/in/it.js"
    assert proposed(Touched(read=frozenset({path})), Path("/srv/x")).read == (Path("/data/app/node_modules"),)


def test_what_every_program_may_read_is_not_named() -> None:
    free = frozenset({"/usr/lib/x.so", "/etc/hosts", "/dev/null", "/proc/self/maps", "/sys/kernel/x"})
    found = proposed(Touched(read=free, write=frozenset({"/dev/null"})), Path("/srv/x"))
    assert (found.read, found.write) == ((), ())


def test_a_folder_that_the_command_names_is_granted(tmp_path: Path) -> None:
    (tmp_path / "books").mkdir()
    found = proposed(Touched(), tmp_path, "./books", "--quiet", "a/missing")
    assert (found.read, found.write) == ((tmp_path / "books",), (tmp_path / "books",))


def test_a_unix_socket_is_granted_by_its_own_name_and_none_of_the_c_library(tmp_path: Path) -> None:
    touched = Touched(
        write=frozenset({str(tmp_path / "run" / "log")}),
        sockets=frozenset({str(tmp_path / "run" / "s"), "/run/nscd/socket"}),
    )
    assert proposed(touched, tmp_path).write == (tmp_path / "run", tmp_path / "run" / "s")


def test_limits_leave_room() -> None:
    small = proposed(Touched(memory_bytes=1, processes=1), Path("/srv/x"))
    large = proposed(Touched(memory_bytes=500 << 20, processes=40), Path("/srv/x"))
    assert (small.memory_mb, small.processes) == (256, 32)
    assert (large.memory_mb, large.processes) == (1536, 120)


def test_the_line_is_toml_with_short_paths(tmp_path: Path) -> None:
    sandbox = DeclaredSandbox((tmp_path / "a", Path("/x")), (Path.home() / "b",), (443,), 256, 32)
    read = tomllib.loads(sandbox_line(sandbox, tmp_path))["sandbox"]
    assert read == {
        "read": ["a", "/x"],
        "write": ["~/b"],
        "connect": [443],
        "memory_mb": 256,
        "processes": 32,
    }
    assert 'connect = "any"' in sandbox_line(DeclaredSandbox(connect=None), tmp_path)


def test_what_variables_name_is_granted_unless_it_is_too_much(tmp_path: Path) -> None:
    for name in ("books", "state"):
        (tmp_path / name).mkdir()
    (tmp_path / "books" / "memory.json").write_text("{}")
    given = [
        str(tmp_path / "books" / "memory.json"),
        str(tmp_path / "state" / "new.db"),
        "./state",
        str(Path.home()),
        "/new.db",
        "https://a.example/x",
        "org/repo",
        "word",
        "a\0/b",
    ]
    found = propose(Touched(), ("/bin/sh",), {"PATH": "/bin"}, tmp_path, given)
    assert found.write == (tmp_path / "books", tmp_path / "state")
    assert found.read == found.write


def test_of_a_hidden_folder_only_the_file_that_a_variable_names_is_granted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    key = tmp_path / ".keys" / "key.json"
    key.parent.mkdir()
    key.write_text("{}")
    found = propose(Touched(), ("/bin/sh",), {"PATH": "/bin"}, tmp_path, [str(key)])
    assert found.write == (key,)


def test_a_new_file_that_the_command_names_is_granted_with_its_folder_and_a_script_is_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "server.py").write_text("")
    found = proposed(Touched(), tmp_path, "./code/server.py", f"--db={tmp_path}/data/new.db", "--verbose")
    assert found.write == (tmp_path / "data",)
