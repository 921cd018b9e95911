"""A server as a process: its streams, and that its end is known and whole."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from portbook.upstreams.stdio_server_process import ChildProcess
from portbook.upstreams.transport import NotSent

ECHO = """
import sys
for line in sys.stdin:
    print(line.strip().upper(), flush=True)
print('bye', file=sys.stderr)
"""


def test_what_is_written_is_read_and_a_closed_input_ends_it(tmp_path: Path) -> None:
    async def main() -> tuple[bytes, bytes, int | None]:
        out, errors, ended = bytearray(), bytearray(), asyncio.Event()
        child = await ChildProcess.start(
            [sys.executable, "-c", ECHO],
            os.environ,
            tmp_path,
            on_output=out.extend,
            on_error_output=errors.extend,
            on_end=ended.set,
        )
        child.write(b"hello\n")
        while b"\n" not in out:
            await asyncio.sleep(0.01)
        status = await child.stop()
        await asyncio.wait_for(ended.wait(), 10)
        assert not child.is_open
        return bytes(out), bytes(errors), status

    assert asyncio.run(main()) == (b"HELLO\n", b"bye\n", 0)


def test_much_output_is_passed_on_a_piece_in_each_turn_of_the_loop(tmp_path: Path) -> None:
    async def main() -> list[int]:
        pieces = list[int]()
        child = await ChildProcess.start(
            [sys.executable, "-c", "print('x' * 199_999)"],
            os.environ,
            tmp_path,
            on_output=lambda data: pieces.append(len(data)),
            on_error_output=lambda _: None,
            on_end=lambda: None,
        )
        while sum(pieces) < 200_000:
            await asyncio.sleep(0.01)
        await child.stop()
        return pieces

    pieces = asyncio.run(asyncio.wait_for(main(), 30))
    assert sum(pieces) == 200_000
    assert max(pieces) <= 8192


class Counting:
    """What a process is written."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


def test_all_that_one_turn_of_the_loop_writes_is_one_write() -> None:
    async def main() -> None:
        child, stdin = ChildProcess(cast("Any", None), 0), Counting()
        child._stdin = cast("Any", stdin)
        for turn in (b"a", b"b"):
            for _ in range(3):
                child.write(turn)
            assert child.unread_bytes == 3  # what waits for the turn's end counts, too
            await asyncio.sleep(0)
            assert child.unread_bytes == 0
        assert stdin.writes == [b"aaa", b"bbb"]

    asyncio.run(main())


def test_a_folder_that_does_not_exist_starts_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(NotSent, match="its cwd cannot be used: No such file"):
            await ChildProcess.start(
                ["x"],
                {},
                tmp_path / "missing",
                on_output=lambda _: None,
                on_error_output=lambda _: None,
                on_end=lambda: None,
            )

    asyncio.run(main())
