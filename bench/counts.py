"""What one call costs in counts, which no other work of the machine changes."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from bench.callgrind import Missing
from bench.instructions import count_plain
from bench.single_steps import NotTraced, count_steps
from bench.way import measure_way

__all__ = ["Counts", "count_call"]

# As many calls as a client that does not wait sends in one write.
_PIPELINED = 32


class Counts(NamedTuple):
    """The counts of one plain `tools/call` over STDIO."""

    instructions: int | None
    """As callgrind counts them. None without valgrind."""
    functions: float
    """Calls of our functions, where a read brings one message."""
    functions_pipelined: float
    """The same where a read brings many."""
    files: int
    """The files that these functions are in."""
    executed: int | None = None
    """Instructions as the processor executes them. None where they were not counted."""


def count_call(*, with_steps: bool) -> Counts:
    """Return the counts of one call; `with_steps` also those that take some minutes."""
    alone, among_others = measure_way(), measure_way(per_read=_PIPELINED)
    try:
        instructions = count_plain()
    except Missing:
        instructions = None
    executed = None
    if with_steps:
        with suppress(NotTraced):
            executed = count_steps()
    return Counts(instructions, alone.calls, among_others.calls, alone.files, executed)
