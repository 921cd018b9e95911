"""Sockets that listen, and how many connections there are descriptors for."""

from __future__ import annotations

import subprocess
import sys

import pytest

from portbook.doors.http.server.listeners_of_workers import bind, is_host, is_loopback

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from portbook.doors.http.server import connection_limits_deadlines_and_overload as limits
found = limits.with_descriptors(limits.ConnectionLimits())
print(found.most, found.reserve, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(256, 4096, "2048 64 2368"), (256, 256, "160 32 256"), (1024, 1024, "704 64 1024")],
)
def test_there_are_no_more_connections_than_descriptors(soft: int, hard: int, expected: str) -> None:
    script = LIMITED.format(soft=soft, hard=hard)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected


def test_a_port_is_bound_once() -> None:
    with bind("127.0.0.1", 0) as listener, pytest.raises(OSError, match="in use"):
        bind("127.0.0.1", listener.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("127.0.0.2", True), ("::1", True), ("0.0.0.0", False), ("example.com", False)],
)
def test_loopback_is_known_by_its_names(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("host", "verdict"),
    [
        *((host, True) for host in ("127.0.0.1", "0.0.0.0", "::", "::1", "localhost", "box-7.example.com")),
        *(
            (host, False)
            for host in ("256.1.1.1", "1.2.3", "http://localhost", "localhost:80", "a b", "-x", "")
        ),
    ],
)
def test_an_address_or_a_name_is_a_host_and_nothing_else_is(host: str, verdict: bool) -> None:
    assert is_host(host) is verdict
