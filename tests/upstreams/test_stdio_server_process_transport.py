"""A server over its standard streams: lines in, lines out, and a known end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.stdio_server_process import StdioTransport
from portbook.upstreams.transport import NotSent
from portbook.wire.lines_and_size_limit import Frame

ECHO_TWICE = "import sys\nfor at in range(2): print(sys.stdin.readline().strip(), flush=True)"


class Receiver:
    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.ended = asyncio.Event()

    def received(self, frame: Frame, of: int | None) -> None:
        self.frames.append(frame)

    def awaits(self, of: int) -> bool:
        return False

    def failed(self, of: int, error: Exception) -> None:
        raise AssertionError(error)

    def lost(self, problem: str) -> None:
        self.ended.set()


async def environment() -> Mapping[str, str]:
    return os.environ


def test_lines_come_back_and_the_end_is_told(tmp_path: Path) -> None:
    async def main() -> list[Frame]:
        command = (sys.executable, "-c", ECHO_TWICE)
        declared = DeclaredUpstream("s", "stdio", command=command, folder=tmp_path)
        transport = StdioTransport(declared, environment, lambda _: None, str)
        with pytest.raises(NotSent):
            transport.send({}, b"{}")
        receiver = Receiver()
        await transport.open(receiver)
        transport.send({}, b'{"a":1}')
        transport.send({}, b'{"a":2}')
        await asyncio.wait_for(receiver.ended.wait(), 10)
        await transport.close()
        assert not transport.is_open
        return receiver.frames

    assert asyncio.run(main()) == [b'{"a":1}', b'{"a":2}']
