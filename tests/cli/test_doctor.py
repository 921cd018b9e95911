"""`portbook doctor`: what is there, without secrets, whatever is wrong."""

from __future__ import annotations

import json
import socket
from pathlib import Path

from portbook.version import __version__
from support.portbook_process import environment, run


def test_it_shows_versions_extras_files_and_port(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text("[server]\nport = 0\n")
    finished = run("doctor", cwd=tmp_path, env=environment(PORTBOOK_OPERATOR_KEY="hunter2-hunter2-hunter2"))
    said = json.loads(finished.out)
    assert (finished.code, said["portbook"], said["port"]) == (0, __version__, "127.0.0.1:0: free")
    assert said["extras"] == {"yaml": "installed", "postgres": "installed"}
    assert said["records"] == "runs: can be written"
    assert said["settings"] == str(tmp_path / "portbook.toml")
    assert b"hunter2" not in finished.out
    assert [path.name for path in tmp_path.iterdir()] == ["portbook.toml"]


def test_a_port_in_use_and_broken_settings_are_told_beside_all_that_works(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        (tmp_path / "portbook.toml").write_text(f"[server]\nport = {taken.getsockname()[1]}\n")
        assert "in use" in json.loads(run("doctor", cwd=tmp_path).out)["port"]
    (tmp_path / "portbook.toml").write_text("[server]\nprot = 1\n")
    finished = run("doctor", "--json", cwd=tmp_path)
    assert finished.code == 2
    assert json.loads(finished.out)["settings"] == [
        "portbook.toml:2:1: unknown setting 'server.prot'; did you mean server.port?"
    ]
