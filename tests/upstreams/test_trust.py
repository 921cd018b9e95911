"""What is seen first is approved, and what differs from it is withheld."""

from __future__ import annotations

from portbook.upstreams.definitions import ObservedDefinition
from portbook.upstreams.trust import FirstUse


def tool(name: str, words: str = "", server: str = "s") -> ObservedDefinition:
    return ObservedDefinition(server, "tool", name, {"name": name, "description": words})


def test_what_is_seen_first_is_served_until_it_differs() -> None:
    trust = FirstUse()
    assert trust.judge("s", [tool("a"), tool("b")]).withheld == ()
    judged = trust.judge("s", [tool("a"), tool("b", "changed")])
    assert [each.name for each in judged.served] == ["a"]
    assert [each.observed.name for each in judged.withheld] == ["b"]


def test_a_definition_that_is_what_it_was_is_served_again() -> None:
    trust = FirstUse()
    trust.judge("s", [tool("a")])
    trust.judge("s", [tool("a", "changed")])
    assert trust.judge("s", [tool("a")]).withheld == ()


def test_the_order_of_members_is_no_change() -> None:
    trust = FirstUse()
    trust.judge("s", [ObservedDefinition("s", "tool", "a", {"name": "a", "x": 1})])
    assert trust.judge("s", [ObservedDefinition("s", "tool", "a", {"x": 1, "name": "a"})]).withheld == ()


def test_servers_do_not_approve_for_each_other() -> None:
    trust = FirstUse()
    trust.judge("s", [tool("a")])
    assert trust.judge("t", [tool("a", "different", "t")]).withheld == ()
