"""nginx and HAProxy from Debian before three servers, configured as the documentation shows."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.certificates import make_certificate
from support.counts import count
from support.portbook_process import HttpServer, child, http_server
from support.record_receivers import free_port

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
PATIENCE_S = 60

TOOLS = """
import os
from portbook import Toolset

toolset = Toolset("where")

@toolset.tool(effect="read")
def process() -> int:
    return os.getpid()
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[server]
trusted_proxies = ["127.0.0.1"]
allowed_hosts = ["mcp.example.com"]
"""

NGINX = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/portbook.conf;
}}
"""


def placed(text: str, folder: Path, port: int, nodes: list[HttpServer]) -> str:
    """A configuration of ours, with the addresses and files of this test."""
    for number, node in enumerate(nodes, 1):
        text = text.replace(f"portbook-{number}:8765", node.url.removeprefix("http://"))
    text = text.replace("/etc/portbook", str(folder))
    for word in ("listen ", "bind :"):
        text = text.replace(f"{word}443", f"{word.split()[0]} 127.0.0.1:{port}")
    return text


def nginx(folder: Path, port: int, nodes: list[HttpServer]) -> list[str]:
    (folder / "portbook.conf").write_text(
        placed((DEPLOY / "nginx/portbook.conf").read_text(), folder, port, nodes)
    )
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return ["-p", str(folder), "-c", str(folder / "nginx.conf")]


def haproxy(folder: Path, port: int, nodes: list[HttpServer]) -> list[str]:
    (folder / "haproxy.cfg").write_text(
        placed((DEPLOY / "haproxy/haproxy.cfg").read_text(), folder, port, nodes)
    )
    return ["-db", "-f", str(folder / "haproxy.cfg")]


BALANCERS = {"nginx": nginx, "haproxy": haproxy}


@contextmanager
def balanced(folder: Path, name: str, nodes: list[HttpServer]) -> Iterator[int]:
    """The port of a balancer before these nodes."""
    program = shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin")
    if program is None:
        pytest.skip(f"apt install {name}")
    make_certificate(folder)
    certificate, key = (folder / "cert.pem").read_text(), (folder / "key.pem").read_text()
    (folder / "tls.crt").write_text(certificate)
    (folder / "tls.key").write_text(key)
    (folder / "tls.pem").write_text(certificate + key)
    port = free_port()
    with child([program, *BALANCERS[name](folder, port, nodes)], stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 5).close()
                break
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.05)
        yield port
        process.terminate()
        process.wait(PATIENCE_S)


class Client:
    """An MCP client that opens a connection for each request."""

    def __init__(self, folder: Path, port: int) -> None:
        self._port = port
        self._context = ssl.create_default_context(cafile=str(folder / "cert.pem"))
        self._context.check_hostname = False
        self.session: dict[str, str] = {}

    def request(self, message: dict[str, Any]) -> tuple[int, Any]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=60, context=self._context)
        headers = {
            "host": "mcp.example.com",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **self.session,
        }
        connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), headers)
        answer = connection.getresponse()
        body = answer.read().decode()
        if session := answer.getheader("mcp-session-id"):
            self.session = {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        connection.close()
        if "data: " in body:
            body = body.partition("data: ")[2].partition("\n")[0]
        return answer.status, json.loads(body) if body else None

    def call(self) -> tuple[int, Any]:
        return self.request({"id": 2, "method": "tools/call", "params": {"name": "process", "arguments": {}}})


@pytest.mark.soak("load balancers")
@pytest.mark.parametrize("name", BALANCERS)
def test_a_session_goes_on_over_three_servers_and_one_that_stops_is_not_noticed(
    tmp_path: Path, name: str
) -> None:
    calls = count("load balancers")
    if not calls:
        pytest.skip("only in a soak: apt install nginx haproxy")
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    with ExitStack() as stack:
        nodes = [stack.enter_context(http_server(cwd=tmp_path, tools=())) for _ in range(3)]
        port = stack.enter_context(balanced(tmp_path, name, nodes))
        client = Client(tmp_path, port)
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        deadline = time.monotonic() + PATIENCE_S
        while client.request({"id": 1, "method": "initialize", "params": about})[0] == 503:
            assert time.monotonic() < deadline  # HAProxy has not asked the nodes yet
            time.sleep(0.1)
        assert client.session
        assert client.request({"method": "notifications/initialized"})[0] == 202
        where: Counter[int] = Counter()
        for number in range(calls):
            if number == calls // 2:
                nodes[0].process.terminate()
            status, answer = client.call()
            assert status == 200, answer
            where[answer["result"]["structuredContent"]["result"]] += 1
        assert set(where) == {node.process.pid for node in nodes}
