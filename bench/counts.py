"""What one call costs in counts, which no other work of the machine changes."""

from __future__ import annotations

from typing import NamedTuple

from bench.callgrind import Missing
from bench.instructions import count_plain
from bench.way import measure_way

__all__ = ["Counts", "count_call"]

# As many calls as a client that does not wait sends in one write.
_PIPELINED = 32


class Counts(NamedTuple):
    """The counts of one plain `tools/call` over STDIO."""

    instructions: int | None
    """None without valgrind."""
    functions: float
    """Calls of our functions, where a read brings one message."""
    functions_pipelined: float
    """The same where a read brings many."""
    files: int
    """The files that these functions are in."""


def count_call() -> Counts:
    """Return the counts of one call."""
    alone, among_others = measure_way(), measure_way(per_read=_PIPELINED)
    try:
        instructions = count_plain()
    except Missing:
        instructions = None
    return Counts(instructions, alone.calls, among_others.calls, alone.files)
