"""Which definitions the lock lets through."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.pins.approved_definitions_in_lock import PinLock, approve
from portbook.pins.on_change import OnChange, PinSettings, Reaction, TrustedBy
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.served_or_withheld import Standing
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME
from portbook.upstreams.listed_definitions import ObservedDefinition, Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.trust_by_lock import Memory, PinnedTrust, pinned_part

TOOL: dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
CHANGED: dict[str, Any] = {**TOOL, "inputSchema": {"type": "object", "properties": {"a": {}}}}


def offer_of(*tools: dict[str, Any], prompts: tuple[str, ...] = (), resources: tuple[str, ...] = ()) -> Offer:
    definitions = [
        *(ObservedDefinition("box", "tool", each["name"], each) for each in tools),
        *(ObservedDefinition("box", "prompt", name, {"name": name}) for name in prompts),
        *(ObservedDefinition("box", "resource", uri, {"uri": uri, "name": uri}) for uri in resources),
    ]
    return Offer("box", tuple(definitions))


def declared(
    trust: TrustedBy = "lock", tools: tuple[str, ...] = ("*",), **on_change: Reaction
) -> DeclaredUpstream:
    return DeclaredUpstream(
        "box", "stdio", ("box",), tools=tools, pins=PinSettings(trust, OnChange(**on_change))
    )


class Desk:
    """A trust with a memory that a test sees."""

    def __init__(self, folder: Path) -> None:
        self.remembered: list[Offer] = []
        self.said: list[str] = []
        self.trust = PinnedTrust(folder, Memory(self._recall, self.remembered.append), self.said.append)

    def _recall(self, server: str) -> Offer | None:
        return next((each for each in reversed(self.remembered) if each.server == server), None)


def names(found: tuple[Any, ...]) -> list[str]:
    return [getattr(each, "observed", each).name for each in found]


def test_without_a_lock_nothing_is_served(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.trust.known(declared()) is None
    judged = desk.trust.judge(declared(), offer_of(TOOL, prompts=("p",), resources=("r://1",)))
    assert (judged.served, judged.is_pending) == ((), True)
    assert names(judged.withheld) == ["t", "p"]
    assert {each.verdict.standing for each in judged.withheld} == {Standing.PENDING}
    assert not (tmp_path / LOCK_NAME).exists()


def test_on_first_use_what_is_seen_is_written_to_the_lock(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    judged = desk.trust.judge(declared("first-use"), offer_of(TOOL, resources=("r://1",)))
    assert names(judged.served) == ["t", "r://1"]
    assert list(PinLock.read(tmp_path).servers["box"].tools) == ["t"]
    assert not desk.trust.has_changed()
    again = desk.trust.judge(declared("first-use"), offer_of(CHANGED))
    assert (again.served, names(again.withheld)) == ((), ["t"])


def test_the_same_offer_is_judged_and_remembered_once(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions.observed([TOOL])})
    desk = Desk(tmp_path)
    first = desk.trust.judge(declared(), offer_of(CHANGED))
    assert desk.trust.judge(declared(), offer_of(CHANGED)) is first
    assert len(desk.remembered) == 1
    approve(tmp_path, {"box": ServerDefinitions.observed([CHANGED])})
    assert desk.trust.has_changed()
    assert names(desk.trust.judge(declared(), offer_of(CHANGED)).served) == ["t"]
    assert len(desk.remembered) == 1


def test_a_removed_definition_is_withheld_where_that_is_asked_for(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions.observed([TOOL])})
    trust = Desk(tmp_path).trust
    assert trust.judge(declared(), offer_of()).withheld == ()
    (gone,) = trust.judge(declared(removed=Reaction.ASK), offer_of(prompts=("p",))).withheld[1:]
    assert gone.observed.definition["inputSchema"] == TOOL["inputSchema"]


def test_a_tool_that_is_not_wanted_is_neither_served_nor_withheld(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions.observed([])})
    judged = Desk(tmp_path).trust.judge(declared(tools=("u",)), offer_of(TOOL))
    assert (judged.served, judged.withheld) == ((), ())
    assert pinned_part(declared(tools=("u",)), offer_of(TOOL)).tools == {}


def test_hints_of_an_accepted_change_are_no_better_than_the_approved_ones(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions.observed([{**TOOL, "annotations": {}}])})
    judged = Desk(tmp_path).trust.judge(declared(annotations=Reaction.ACCEPT), offer_of(TOOL))
    assert judged.served[0].definition["annotations"] == {}


def test_what_is_known_before_a_start_is_the_lock_and_the_resources_seen_last(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions.observed([TOOL], [{"name": "p"}], "Be kind.")})
    desk = Desk(tmp_path)
    desk.remembered.append(Offer("box", offer_of(CHANGED, resources=("r://1",)).definitions, completes=True))
    known = desk.trust.known(declared())
    assert known is not None
    assert [(each.kind, each.name) for each in known.definitions] == [
        ("tool", "t"),
        ("prompt", "p"),
        ("resource", "r://1"),
    ]
    assert known.definitions[0].definition == TOOL
    assert (known.instructions, known.completes) == ("Be kind.", True)


def test_a_server_without_tools_and_prompts_has_to_be_asked(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions(instructions="Be kind.")})
    assert Desk(tmp_path).trust.known(declared()) is None


def test_a_lock_is_read_again_when_it_has_changed_and_a_broken_one_is_told(tmp_path: Path) -> None:
    approve(tmp_path, {"box": ServerDefinitions.observed([TOOL])})
    desk = Desk(tmp_path)
    assert not desk.trust.has_changed()
    (tmp_path / LOCK_NAME).write_text("{")
    assert not desk.trust.has_changed()
    assert desk.said[0].startswith("portbook.lock:1: not valid JSON")
    assert not desk.trust.has_changed()
    assert len(desk.said) == 1
    assert names(desk.trust.judge(declared(), offer_of(TOOL)).served) == ["t"]
    (tmp_path / LOCK_NAME).unlink()
    assert desk.trust.has_changed()
    assert desk.trust.judge(declared(), offer_of(TOOL)).is_pending
    (tmp_path / LOCK_NAME).write_text("{")
    with pytest.raises(BadLock):
        Desk(tmp_path)


def test_a_lock_that_cannot_be_written_approves_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    (tmp_path / LOCK_NAME).mkdir()
    judged = desk.trust.judge(declared("first-use"), offer_of(TOOL))
    assert judged.is_pending
    assert desk.said[0].startswith("mcp.box: portbook.lock cannot be written, so nothing of it is approved: ")


def test_an_offer_reads_back_from_json() -> None:
    offer = Offer("box", offer_of(TOOL, resources=("r://1",)).definitions, "Be kind.", completes=True)
    assert Offer.of_data("box", offer.as_data()) == offer
