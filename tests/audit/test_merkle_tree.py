"""The tree over hashes: its root, and the paths that lead to it."""

from __future__ import annotations

from hashlib import sha256

import pytest

from portbook.audit.merkle_tree import climb, path_of, root_of


def leaves(count: int) -> list[bytes]:
    return [sha256(b"%d" % number).hexdigest().encode() for number in range(count)]


def test_a_node_is_the_hash_of_a_one_and_its_children() -> None:
    two = leaves(2)
    assert root_of(two) == sha256(b"\x01" + two[0] + two[1]).hexdigest()
    assert root_of(two[:1]) == two[0].decode()


@pytest.mark.parametrize("count", [1, 2, 15, 16, 17, 32, 33, 256, 257, 600])
def test_every_leaf_has_a_path_to_the_root_and_to_no_other(count: int) -> None:
    of = leaves(count)
    root, other = root_of(of), root_of(leaves(count + 1)[1:])
    for index in {0, count // 2, count - 1}:
        path = path_of(of, index)
        assert climb(of[index].decode(), path) == root != other
        assert all(len(step.before) + len(step.after) < 16 for step in path)
        if count > 1:
            assert climb(of[index - 1].decode(), path) != root


@pytest.mark.parametrize("count", [2, 16, 17, 300])
def test_a_changed_added_removed_or_moved_leaf_changes_the_root(count: int) -> None:
    of = leaves(count)
    changed = [
        [*of[:-1], leaves(count + 1)[-1]],
        [*of, of[-1]],
        of[:-1],
        [of[1], of[0], *of[2:]],
    ]
    assert len({root_of(each) for each in (of, *changed)}) == len(changed) + 1
