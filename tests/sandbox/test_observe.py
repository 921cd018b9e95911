"""What a program touches is noted, and the program is as it would be without."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook.sandbox import observe

pytestmark = pytest.mark.skipif(not observe.can_observe(), reason="this kind of machine is not known")


def touched(tmp_path: Path, code: str, status: int = 0) -> set[tuple[str, Any]]:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        [sys.executable, "-I", "-S", observe.__file__, str(tmp_path / "notes"), *command],
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.returncode == status
    lines = (tmp_path / "notes").read_text().splitlines()
    return {(kind, what) for kind, what in map(json.loads, lines)}


def test_files_are_noted_as_they_are_used(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "old").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "data" / "old")
    found = touched(
        tmp_path,
        "import os\nopen('link').read(); open('data/new', 'w')\n"
        "os.mkdir('made'); os.rename('made', 'moved')\n"
        "folder = os.open('data', os.O_RDONLY); os.unlink('new', dir_fd=folder)\n"
        "try: open('missing')\nexcept OSError: pass",
    )
    data = tmp_path / "data"
    assert {("read", str(data / "old")), ("write", str(data / "new"))} <= found
    assert {("write", str(tmp_path / "made")), ("write", str(tmp_path / "moved"))} <= found
    assert ("read", str(tmp_path / "missing")) not in found


def test_tcp_ports_are_noted_and_udp_is_not(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        found = touched(
            tmp_path,
            f"import socket\nsocket.create_connection(('127.0.0.1', {port}))\n"
            "socket.socket(type=socket.SOCK_DGRAM).connect(('127.0.0.1', 53))",
        )
    assert {what for kind, what in found if kind == "connect"} == {port}


def test_unix_sockets_are_noted_where_there_is_one(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        listening.listen()
        found = touched(
            tmp_path,
            "import socket\nsocket.socket(socket.AF_UNIX).connect('s')\n"
            "for name in ('none', chr(0) + 'abstract'):\n"
            "    socket.socket(socket.AF_UNIX).connect_ex(name)",
        )
    assert {what for kind, what in found if kind == "socket"} == {str(tmp_path / "s")}


def test_what_children_touch_and_use_is_noted_and_the_status_stays(tmp_path: Path) -> None:
    found = touched(
        tmp_path,
        "import os, threading, time\n"
        "if os.fork() == 0:\n    open('by-child', 'w')\n    time.sleep(0.4)\n    os._exit(0)\n"
        "for _ in range(3): threading.Thread(target=time.sleep, args=(0.4,)).start()\n"
        "held = bytearray(64 << 20); time.sleep(0.4); raise SystemExit(7)",
        status=7,
    )
    assert ("write", str(tmp_path / "by-child")) in found
    assert max(what for kind, what in found if kind == "processes") == 5
    assert max(what for kind, what in found if kind == "memory_bytes") > 64 << 20
