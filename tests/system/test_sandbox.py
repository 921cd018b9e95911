"""What a confined server tries, and what comes of it: through the product, with the kernel as judge."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from portbook.sandbox.confined_command import problem_of_system
from support.mcp_peer import Peer, peer_of, table
from support.portbook_process import PORTBOOK, TESTS

pytestmark = pytest.mark.skipif(
    problem_of_system() is not None, reason=f"servers cannot be confined here: {problem_of_system()}"
)

SERVER = TESTS / "fixtures" / "attempting_server.py"
COMMAND = f"command = {json.dumps([sys.executable, str(SERVER)])}"

# What is tried, and what came of it with a folder to read, one to write, and one port.
ATTEMPTS: list[tuple[str, str, str]] = [
    ("read what is granted", "said = open('data/note').read()", "kept"),
    ("read beside it", "open('secret').read()", "PermissionError"),
    ("list beside it", "import os; os.listdir('.')", "PermissionError"),
    ("read through a link out", "open('data/link').read()", "PermissionError"),
    ("read the settings", "open('portbook.toml').read()", "PermissionError"),
    ("read its own script", f"said = len(open({str(SERVER)!r}).read()) > 9", "True"),
    ("write where it may only read", "open('data/new', 'w')", "PermissionError"),
    ("remove where it may only read", "import os; os.remove('data/note')", "PermissionError"),
    ("write what is granted", "open('out/new', 'w').write('x')", "done"),
    ("write through a link out", "open('out/link', 'w')", "PermissionError"),
    (
        "make a link out and read it",
        "import os; os.symlink('../secret', 'out/l'); open('out/l')",
        "PermissionError",
    ),
    ("move a secret in", "import os; os.rename('secret', 'out/secret')", "PermissionError"),
    ("read what others run", "open('/proc/1/environ').read()", "PermissionError"),
    ("read its own environment", "open('/proc/self/environ').read()", "PermissionError"),
    ("read passwords", "open('/etc/passwd').read()", "PermissionError"),
    ("end its parent", "import os; os.kill(os.getppid(), 9)", "PermissionError"),
    ("connect to a granted port", "import socket; socket.create_connection(('127.0.0.1', {port}))", "done"),
    (
        "connect to another port",
        "import socket; socket.create_connection(('127.0.0.1', {other}))",
        "PermissionError",
    ),
    (
        "connect by many paths",
        "import socket; socket.socket(proto=262).connect(('127.0.0.1', {other}))",
        "PermissionError",
    ),
    (
        "send before it is connected",
        "import socket; socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', {other}))",
        "PermissionError",
    ),
    ("make raw packets", "import socket; socket.socket(type=socket.SOCK_RAW, proto=1)", "PermissionError"),
    ("talk to the host of a machine", "import socket; socket.socket(40)", "PermissionError"),
    (
        "use a Unix socket",
        "import socket; socket.socket(socket.AF_UNIX).connect('agent.sock')",
        "PermissionError",
    ),
    ("use a pair of sockets", "import socket; socket.socketpair()", "done"),
    ("look up a name", "import socket; said = bool(socket.getaddrinfo('localhost', 80))", "True"),
    (
        "ask a ring for sockets",
        "import ctypes; said = ctypes.CDLL(None).syscall(425, 8, 0)",
        "-1",
    ),
    ("listen", "import socket; socket.create_server(('127.0.0.1', 0))", "PermissionError"),
    (
        "hide it in a child",
        "import os, sys; said = os.spawnl(os.P_WAIT, sys.executable, 'x', '-c', 'open(\"secret\")')",
        "1",
    ),
    ("hold too much", "bytearray(300 << 20)", "MemoryError"),
    ("write to nothing", "open('/dev/null', 'w').write('x')", "done"),
    ("look up a certificate", "import ssl; ssl.create_default_context()", "done"),
]


def folder_of(path: Path) -> Path:
    for name in ("data", "out"):
        (path / name).mkdir()
        (path / name / "link").symlink_to(path / "secret")
    (path / "data" / "note").write_text("kept")
    (path / "secret").write_text("hidden")
    return path


@contextmanager
def unix_listener(path: Path) -> Generator[None]:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        yield


@contextmanager
def listener() -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def sandbox(port: int, more: str = "") -> str:
    return f'sandbox = {{ read = ["./data"], write = ["out"], connect = [{port}], memory_mb = 256{more} }}'


def confined_in(folder: Path) -> set[bool]:
    """What both views of the records of calls say."""
    kept = [*folder.glob("log/*/envelope_validation/*Z*.jsonl"), *folder.glob("log/*/execution/*Z*.jsonl")]
    views = [json.loads(line) for path in kept for line in path.read_text().splitlines()]
    calls = [view for view in views if "attempt" in str(view.get("tool_id", view.get("metadata")))]
    return {view.get("confined", view.get("metadata", {}).get("confined")) for view in calls}


@pytest.mark.covers("design.sandbox.attempts")
def test_a_confined_server_does_what_it_may_and_nothing_else(tmp_path: Path) -> None:
    folder_of(tmp_path)
    with (
        listener() as port,
        listener() as other,
        unix_listener(tmp_path / "agent.sock"),
        peer_of(tmp_path, table("tries", COMMAND, sandbox(port))) as peer,
    ):
        came: dict[str, str] = {}
        for what, code, _ in ATTEMPTS:
            tried = code.replace("{port}", str(port)).replace("{other}", str(other))
            came[what] = peer.text("tries__attempt", {"code": tried})
    assert came == {what: expected for what, _, expected in ATTEMPTS}
    assert (tmp_path / "secret").read_text() == "hidden"
    assert (tmp_path / "out" / "new").read_text() == "x"
    assert confined_in(tmp_path) == {True}


@pytest.mark.covers("design.sandbox.unix")
def test_a_unix_socket_that_is_granted_by_name_can_be_used(tmp_path: Path) -> None:
    tried = "import socket; socket.socket(socket.AF_UNIX).connect('agent.sock')"
    with (
        unix_listener(tmp_path / "agent.sock"),
        peer_of(tmp_path, table("tries", COMMAND, 'sandbox = { write = ["agent.sock"] }')) as peer,
    ):
        assert peer.text("tries__attempt", {"code": tried}) == "done"
        assert peer.text("tries__attempt", {"code": "open('portbook.toml')"}) == "PermissionError"


def test_without_a_sandbox_the_record_says_so(tmp_path: Path) -> None:
    folder_of(tmp_path)
    with peer_of(tmp_path, table("tries", COMMAND)) as peer:
        assert peer.text("tries__attempt", {"code": "said = open('secret').read()"}) == "hidden"
    assert confined_in(tmp_path) == {False}


FORKS = """
import os, time
for _ in range(200):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
time.sleep(20)
"""


@pytest.mark.covers("design.sandbox.processes")
def test_a_server_that_forks_without_end_is_ended_and_the_next_call_is_served(tmp_path: Path) -> None:
    settings = table("tries", COMMAND, "sandbox = { processes = 20 }")
    with peer_of(tmp_path, settings) as peer:
        answer = json.dumps(peer.call("tries__attempt", {"code": FORKS}))
        # The kernel refuses a user's next process; where it does not count, as root's, the server is ended.
        assert "UPSTREAM_ERROR" in answer or "BlockingIOError" in answer
        assert served_again(peer) == "done"


def served_again(peer: Peer) -> str:
    for _ in range(40):
        result = peer.call("tries__attempt", {"code": ""})
        if "isError" not in result:
            return result["content"][0]["text"]
    return "never"


@pytest.mark.covers("design.sandbox.impossible")
@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ('sandbox = { read = ["./missing"] }', "sandbox.read names"),
        ('sandbox = { write = ["no"] }', "sandbox.write"),
    ],
)
def test_a_server_that_cannot_be_confined_as_asked_does_not_start(
    tmp_path: Path, wanted: str, why: str
) -> None:
    with peer_of(tmp_path, table("tries", COMMAND, wanted)) as peer:
        assert peer.names() == []
    said = (tmp_path / "stderr").read_text()
    assert f"it cannot be confined: {why}" in said
    assert "does not exist" in said


CAREFUL = """
import os, socket, sys
here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "parts"))
import part
open(os.path.join(sys.argv[1], "started"), "w").write(part.WORD)
open("settings.ini").read()
socket.create_connection(("127.0.0.1", {port})).close()
exec(open({server!r}).read())
"""


@pytest.mark.covers("design.sandbox.proposal")
def test_a_server_works_unharmed_in_the_sandbox_that_a_trial_proposes(tmp_path: Path) -> None:
    with listener() as port:
        for name in ("app", "app/parts", "state"):
            (tmp_path / name).mkdir()
        (tmp_path / "app" / "server.py").write_text(CAREFUL.format(port=port, server=str(SERVER)))
        (tmp_path / "app" / "parts" / "part.py").write_text("WORD = 'x'")
        (tmp_path / "settings.ini").write_text("a = 1")
        command = json.dumps([sys.executable, "app/server.py", "./state"])
        settings = table("careful", f"command = {command}")
        (tmp_path / "portbook.toml").write_text(settings)
        asked = [*PORTBOOK, "upstreams", "sandbox", "careful", "--json"]
        done = subprocess.run(asked, cwd=tmp_path, capture_output=True, timeout=60, check=True)
        proposed = json.loads(done.stdout)
        assert proposed["connect"] == [port]
        assert str(tmp_path / "state") in proposed["write"]
        with peer_of(tmp_path, table("careful", f"command = {command}", proposed["line"])) as peer:
            assert peer.text("careful__attempt", {"code": "import part; said = part.WORD"}) == "x"
            assert peer.text("careful__attempt", {"code": "open('/etc/passwd')"}) == "PermissionError"
    assert confined_in(tmp_path) == {True}
