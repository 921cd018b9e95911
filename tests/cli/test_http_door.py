"""Where HTTP is served: with TLS, at a Unix socket, behind a proxy."""

from __future__ import annotations

import contextlib
import http.client
import signal
import socket
import ssl
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from support.certificates import make_certificate
from support.portbook_process import PORTBOOK, SAMPLE_TOOLS, Finished, child, run

LIVEZ = b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"


@contextlib.contextmanager
def serving(folder: Path, settings: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Serve with these settings; yields the process, and what it said when it was ready."""
    (folder / "portbook.toml").write_text(settings)
    command = [*PORTBOOK, "serve", "--http", "--port", "0", str(SAMPLE_TOOLS)]
    with child(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        yield process, said(process.stderr, "serving")
        process.terminate()
        assert process.wait(30) == 0


def said(stderr: IO[bytes], word: str) -> str:
    """Return the next line with this word."""
    while line := stderr.readline().decode():
        if word in line:
            return line
    raise AssertionError(f"never said: {word}")


def shown_name(port: int, trusted: Path) -> str:
    """Ask for /livez over TLS; return the name in the certificate that was shown."""
    context = ssl.create_default_context(cafile=str(trusted))
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=20)
    connection.request("GET", "/livez")
    assert isinstance(connection.sock, ssl.SSLSocket)
    certificate = connection.sock.getpeercert()
    answer = connection.getresponse()
    assert (answer.status, b'"ok"' in answer.read()) == (200, True)
    connection.close()
    assert certificate is not None
    return str(certificate["subject"])


@pytest.mark.covers("design.http-server.tls")
def test_tls_shows_its_certificate_and_a_new_one_after_sighup(tmp_path: Path) -> None:
    make_certificate(tmp_path, "first")
    settings = '[server]\ntls = { cert = "cert.pem", key = "key.pem" }\n'
    with serving(tmp_path, settings) as (process, ready):
        assert process.stderr is not None
        assert "open https://127.0.0.1:" in ready
        port = int(ready.partition("https://127.0.0.1:")[2].partition("/")[0])
        assert "first" in shown_name(port, tmp_path / "cert.pem")
        make_certificate(tmp_path, "second")
        process.send_signal(signal.SIGHUP)
        said(process.stderr, "reloaded")
        assert "second" in shown_name(port, tmp_path / "cert.pem")
        (tmp_path / "key.pem").write_text("no key")
        process.send_signal(signal.SIGHUP)
        said(process.stderr, "the old certificate stays in use")
        assert "second" in shown_name(port, tmp_path / "cert.pem")
        with socket.create_connection(("127.0.0.1", port), timeout=20) as plain, contextlib.suppress(OSError):
            plain.sendall(LIVEZ)
            assert b"HTTP/1.1 200" not in plain.recv(1000)


@pytest.mark.covers("design.http-server.unix-socket")
def test_a_unix_socket_serves_its_owner_alone_and_is_gone_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "portbook.sock"
    with serving(tmp_path, '[server]\nsocket = "portbook.sock"\n') as (_, ready):
        assert "at the socket" in ready
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as raw:
            raw.settimeout(20)
            raw.connect(str(path))
            raw.sendall(LIVEZ)
            answer = b"".join(iter(lambda: raw.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 200 OK")
    assert not path.exists()


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ("tls = { cert = 'none.pem', key = 'none.pem' }", "No such file or directory"),
        ("tls = { cert = 'portbook.toml', key = 'portbook.toml' }", "not a certificate and its key"),
        ("tls = 'cert.pem'", "server.tls must be a table of two files: { cert = FILE, key = FILE }"),
        ("trusted_proxies = ['example.com']", "server.trusted_proxies lists what is no address or network"),
        ("socket = 'portbook.toml'", "portbook.toml:2:1: server.socket is a file that is no socket"),
    ],
)
def test_what_cannot_be_served_stops_the_start_with_its_place(
    tmp_path: Path, settings: str, complaint: str
) -> None:
    (tmp_path / "portbook.toml").write_text(f"[server]\n{settings}\n")
    ended: Finished = run("serve", "--http", "--port", "0", str(SAMPLE_TOOLS), cwd=tmp_path)
    assert ended.code != 0
    assert complaint in ended.err
    assert "portbook.toml" in ended.err
