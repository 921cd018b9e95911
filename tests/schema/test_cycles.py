"""Groups of nodes that lead to each other, compared with what a slow and plain search finds."""

from __future__ import annotations

import random

import pytest

from portbook.schema.evaluation_cost import components
from support.counts import count, seed


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        ({"a": ""}, ["a"]),
        ({"a": "b", "b": ""}, ["b", "a"]),
        ({"a": "a"}, ["a"]),
        ({"a": "b", "b": "a"}, ["ba"]),
        ({"a": "bc", "b": "d", "c": "d", "d": ""}, ["d", "b", "c", "a"]),
        # A group is in the order in which the walk leaves it, the origin last.
        ({"a": "b", "b": "c", "c": "ad", "d": ""}, ["d", "cba"]),
        ({"a": "bc", "b": "a", "c": "a"}, ["bca"]),
    ],
)
def test_groups_come_after_what_they_lead_to(graph: dict[str, str], expected: list[str]) -> None:
    assert ["".join(group) for group in components("a", graph.__getitem__)] == expected


def test_only_what_the_origins_lead_to_is_found() -> None:
    assert components("b", {"a": "b", "b": "c", "c": ""}.__getitem__) == [["c"], ["b"]]


def test_a_chain_longer_than_any_stack_is_walked() -> None:
    groups = components([0], lambda at: [at + 1] if at < 100_000 else [0])
    assert [len(group) for group in groups] == [100_001]


@pytest.mark.soak("random schemas")
def test_a_group_is_what_leads_to_each_other() -> None:
    chance = random.Random(seed())
    for _ in range(count("random schemas")):
        size = chance.randint(1, 8)
        graph = {at: [to for to in range(size) if chance.random() < 0.25] for at in range(size)}
        reach = {at: _reached(graph, at) for at in graph}
        groups = components(graph, graph.__getitem__)
        assert sorted(at for group in groups for at in group) == sorted(graph)
        for index, group in enumerate(groups):
            for at in group:
                assert {to for to in reach[at] if at in reach[to]} | {at} == set(group)
                assert reach[at] <= {to for before in groups[: index + 1] for to in before}


def _reached(graph: dict[int, list[int]], origin: int) -> set[int]:
    found, waiting = set[int](), [*graph[origin]]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting.extend(graph[at])
    return found
