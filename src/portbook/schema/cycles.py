"""Finds the cycles of a graph of references: Tarjan's algorithm (1972), one walk. Pure: no I/O.

Iterative, so that no schema can exhaust the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, TypeVar

__all__ = ["components"]

_N = TypeVar("_N", bound=Hashable)

# Above every place in the order of a walk.
_GROUPED: Final = 1 << 62


def components(origins: Iterable[_N], steps_of: Callable[[_N], Sequence[_N]]) -> list[list[_N]]:
    """Return what `origins` lead to as groups, each group after those that it leads to.

    Nodes that lead to each other are one group, which has them in the order in which the walk left them: a
    step from one to a later one leads back up the walk. A node that is in no cycle is a group of its own.
    """
    found: list[list[_N]] = []
    order: dict[_N, int] = {}
    lowest: dict[_N, int] = {}
    left: dict[_N, int] = {}
    waiting: list[_N] = []
    for origin in origins:
        stack: list[tuple[_N, Sequence[_N], int]] = [] if origin in order else [(origin, steps_of(origin), 0)]
        while stack:
            node, steps, at = stack.pop()
            if at == 0:
                order[node] = lowest[node] = len(order)
                waiting.append(node)
            else:
                lowest[node] = min(lowest[node], lowest[steps[at - 1]])
            while at < len(steps) and steps[at] in order:
                lowest[node] = min(lowest[node], lowest[steps[at]])
                at += 1
            if at < len(steps):
                stack += [(node, steps, at + 1), (steps[at], steps_of(steps[at]), 0)]
                continue
            left[node] = len(left)
            if lowest[node] == order[node]:
                members = [waiting.pop()]
                while members[-1] != node:
                    members.append(waiting.pop())
                found.append(sorted(members, key=left.__getitem__))
                # What is in a group is no way back for those that are left later.
                lowest.update(dict.fromkeys(members, _GROUPED))
    return found
