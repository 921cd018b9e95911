"""A Merkle tree: one hash that stands for many, and short paths that show one among them. Pure: no I/O.

The leaves are hashes, as hexadecimal digits. A node is the SHA-256 of the byte 1 and of its children's
digits, 16 children at most; the last node of a level may have fewer. Sixteen, not two: that takes half the
work for each record, and a path of three levels is enough for 4,096 of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

from portbook.text.named_tuple import NamedTuple

__all__ = ["FAN_OUT", "TreeStep", "climb", "path_of", "root_of"]

FAN_OUT: Final = 16


class TreeStep(NamedTuple):
    """The siblings of a hash in one node, on its left and on its right."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def root_of(leaves: Sequence[bytes]) -> str:
    """Return the root over one or more leaves; a single leaf is its own root."""
    level = leaves
    while len(level) > 1:
        level = _next_level(level)
    return level[0].decode()


def path_of(leaves: Sequence[bytes], index: int) -> list[TreeStep]:
    """Return the steps from the leaf at `index` to the root."""
    steps: list[TreeStep] = []
    level = leaves
    while len(level) > 1:
        start = index - index % FAN_OUT
        steps.append(
            TreeStep(_digits(level[start:index]), _digits(level[index + 1 : start + FAN_OUT])),
        )
        level, index = _next_level(level), index // FAN_OUT
    return steps


def climb(leaf: str, path: Iterable[TreeStep]) -> str:
    """Return the root that a path leads to from `leaf`."""
    for before, after in path:
        leaf = _node([each.encode() for each in (*before, leaf, *after)]).decode()
    return leaf


def _next_level(level: Sequence[bytes]) -> list[bytes]:
    return [_node(level[start : start + FAN_OUT]) for start in range(0, len(level), FAN_OUT)]


def _node(children: Sequence[bytes]) -> bytes:
    return sha256(b"\x01" + b"".join(children)).hexdigest().encode()


def _digits(hashes: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(each.decode() for each in hashes)
