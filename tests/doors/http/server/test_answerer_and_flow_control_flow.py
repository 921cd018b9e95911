"""What goes out to a client is bounded, and a client that reads slowly gets all of it."""

from __future__ import annotations

import asyncio
import socket
from typing import cast

import pytest

from portbook.doors.http.server.answerer_and_flow_control import ClientOutput, limit_unsent


class Transport:
    """A transport whose client reads as the test says."""

    def __init__(self) -> None:
        self.left = 1_000_000

    def set_write_buffer_limits(self, high: int) -> None: ...

    def get_write_buffer_size(self) -> int:
        return self.left


@pytest.mark.parametrize(("read", "has_moved"), [(0, False), (1_000, False), (300_000, True)])
def test_a_client_that_reads_a_fair_part_gets_as_long_again(read: int, has_moved: bool) -> None:
    transport = Transport()
    out = ClientOutput(cast("asyncio.Transport", transport))
    out.hold()
    for _ in range(3):
        transport.left -= read
        assert out.has_moved() is has_moved


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_the_system_holds_little_that_it_has_not_sent(family: socket.AddressFamily) -> None:
    with socket.socket(family) as made:

        class Connected(asyncio.BaseTransport):
            def get_extra_info(self, name: str, default: object = None) -> object:
                return made if name == "socket" else default

        limit_unsent(Connected())
        if family == socket.AF_INET:
            assert made.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT) == 131_072
