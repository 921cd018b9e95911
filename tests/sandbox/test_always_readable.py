"""What a confined program may always read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portbook.sandbox.always_readable import always_readable


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def readable(folder: Path, *command: str, path: Path | None = None, **environ: str) -> set[str]:
    return set(always_readable(command, {"PATH": str(path or folder / "bin"), **environ}, folder))


def test_the_prefix_of_a_program_is_readable(tmp_path: Path) -> None:
    program(tmp_path / "opt" / "bin" / "tool")
    assert str(tmp_path / "opt") in readable(tmp_path, "tool", path=tmp_path / "opt" / "bin")


def test_the_interpreter_of_a_script_and_where_links_lead_are_readable(tmp_path: Path) -> None:
    program(tmp_path / "node" / "bin" / "node")
    real = program(tmp_path / "packages" / "cli.js", "#!/usr/bin/env -S node --quiet\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "npx").symlink_to(real)
    found = readable(
        tmp_path, "npx", PATH=os.pathsep.join((str(tmp_path / "bin"), str(tmp_path / "node/bin")))
    )
    assert {str(real), str(tmp_path / "node")} <= found


def test_the_installation_that_made_a_virtual_environment_is_readable(tmp_path: Path) -> None:
    program(tmp_path / "base" / "bin" / "python")
    program(tmp_path / "venv" / "bin" / "python")
    (tmp_path / "venv" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'base' / 'bin'}\nversion = 3\n")
    assert {str(tmp_path / "venv"), str(tmp_path / "base")} <= readable(tmp_path, "./venv/bin/python")


@pytest.mark.parametrize("inner", ["bin", ".local/bin"])
def test_a_persons_home_is_never_readable_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inner: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    program(tmp_path / inner / "tool")
    found = readable(tmp_path, str(tmp_path / inner / "tool"))
    assert str(tmp_path / inner) in found
    assert not {str(tmp_path), str(tmp_path / ".local")} & found


def test_files_that_the_command_names_are_readable_and_folders_are_not(tmp_path: Path) -> None:
    program(tmp_path / "server.py")
    (tmp_path / "data").mkdir()
    found = readable(tmp_path, "python-that-is-not-there", "server.py", "data", "--x", "\0")
    assert str(tmp_path / "server.py") in found
    assert str(tmp_path / "data") not in found


def test_certificates_that_variables_name_are_readable(tmp_path: Path) -> None:
    program(tmp_path / "ca.pem")
    assert str(tmp_path / "ca.pem") in readable(tmp_path, "x", SSL_CERT_FILE=str(tmp_path / "ca.pem"))


def test_private_keys_beside_certificates_are_not(tmp_path: Path) -> None:
    assert not {"/etc/ssl", "/etc/ssl/private", "/etc/pki"} & readable(tmp_path, "x")


def test_a_program_that_only_a_virtual_environment_has_is_looked_for_there_alone(tmp_path: Path) -> None:
    program(tmp_path / "python" / "bin" / "python3")
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python3").symlink_to(tmp_path / "python" / "bin" / "python3")
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {tmp_path / 'python' / 'bin'}\n")
    server = program(tmp_path / "env" / "bin" / "a-server", f"#!{tmp_path / 'env' / 'bin' / 'python3'}\n")
    found = readable(tmp_path, str(server))
    assert {str(tmp_path / "env"), str(tmp_path / "python")} <= found
    assert [path for path in found if not Path(path).exists()] == []
