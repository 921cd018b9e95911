"""Result envelopes through every door: the same call, the same bytes; the tool untouched."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook import inspect_envelope
from support.every_door import DOORWAYS, ENVELOPE_DOORWAYS, Asked, Verdict
from support.portbook_process import run

TOOLS = """
from typing import Any
from portbook import Toolset

toolset = Toolset("envelopes")

@toolset.tool(effect="read")
def look_up(id: str) -> dict[str, Any]:
    return {"id": id, "cents": 1999, "password": "hunter2 hunter2", "schema_version": "order.v1"}

@toolset.tool(effect="read")
def plain(id: str) -> dict[str, Any]:
    return {"id": id}

@toolset.tool(effect="read")
def fail(id: str) -> dict[str, Any]:
    raise RuntimeError("do not tell")

@toolset.tool(effect="read")
def enclosed(id: str) -> dict[str, Any]:
    return {"schema_version": "mcp.envelope.v0.1", "result": id, "provenance": None}

@toolset.tool(effect="destructive")
def wipe(id: str) -> None:
    pass
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[envelope]
default = "{default}"
{signing}
[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"
"""

FULL = {"capture_provenance": True, "capture_artifacts": True, "provenance_mode": "full"}
MINIMAL = {"capture_provenance": True}
WRONG = {"capture_provenance": "yes"}
every_door = pytest.mark.parametrize("door", ENVELOPE_DOORWAYS)


class World:
    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self._stack = stack
        self._open: dict[str, Any] = {}

    def ask(self, door: str, asked: Asked) -> Verdict:
        if door not in self._open:
            self._open[door] = self._stack.enter_context(ENVELOPE_DOORWAYS[door](self.folder, None))
        return self._open[door](asked)


@contextlib.contextmanager
def serving(folder: Path, default: str = "off", signing: str = "") -> Iterator[World]:
    with contextlib.ExitStack() as stack:
        (folder / "tools.py").write_text(TOOLS)
        (folder / "portbook.toml").write_text(SETTINGS.format(default=default, signing=signing))
        yield World(folder, stack)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(tmp_path_factory.mktemp("envelopes")) as world:
        yield world


def in_bytes(envelope: Any) -> str:
    """An envelope as it came, member by member in its order."""
    return json.dumps(envelope)


@pytest.mark.covers("003.doors.same-bytes")
@pytest.mark.parametrize("controls", [MINIMAL, FULL, WRONG], ids=["minimal", "full", "wrong"])
@pytest.mark.parametrize("tool", ["look_up", "plain", "fail", "enclosed"])
def test_the_same_call_through_every_door_has_the_same_envelope(
    world: World, tool: str, controls: dict[str, Any]
) -> None:
    asked = Asked(tool, {"id": "A-1"}, controls=controls)
    envelopes = {door: world.ask(door, asked).envelope for door in ENVELOPE_DOORWAYS}
    assert len({in_bytes(envelope) for envelope in envelopes.values()}) == 1, envelopes
    envelope = next(iter(envelopes.values()))
    assert inspect_envelope(envelope).is_sound, inspect_envelope(envelope).findings


@every_door
def test_what_records_of_a_tool_share_is_the_same_after_every_call(world: World, door: str) -> None:
    def enclosed(id_: str, controls: dict[str, Any]) -> Any:
        return world.ask(door, Asked("plain", {"id": id_}, controls=controls)).envelope

    first = enclosed("A-1", MINIMAL)
    others = [enclosed("A-2", MINIMAL), enclosed("A-1", FULL), enclosed("A-1", {**MINIMAL, "parents": ["a"]})]
    assert in_bytes(enclosed("A-1", MINIMAL)) == in_bytes(first)
    runs = {each["provenance"]["run_id"] for each in (first, *others)}
    assert len(runs) == 4


@every_door
def test_an_envelope_says_what_ran_and_holds_no_secret(world: World, door: str) -> None:
    verdict = world.ask(door, Asked("look_up", {"id": "A-1"}, controls=FULL))
    envelope = verdict.envelope
    assert envelope["result"]["password"] == "[redacted]"
    assert b"hunter2" not in verdict.raw
    record = envelope["provenance"]
    assert record["tool"]["name"] == "look_up"
    assert [artifact["artifact_id"] for artifact in record["inputs"]] == [
        "arguments",
        "tool.definition",
        "tool.input_schema",
        "tool.output_schema",
        "policy",
        "policy.rule",
    ]


@every_door
def test_a_tool_that_fails_is_told_in_the_envelope_and_one_that_was_refused_has_none(
    world: World, door: str
) -> None:
    [problem] = world.ask(door, Asked("fail", {"id": "A-1"}, controls=MINIMAL)).envelope["errors"]
    assert problem["code"] == "ADAPTER.EXECUTION.FAILED"
    refused = world.ask(door, Asked("wipe", {"id": "A-1"}, controls=MINIMAL))
    assert refused.reason == "POLICY_VIOLATION"
    assert refused.envelope is None


@pytest.mark.parametrize("door", DOORWAYS)
def test_whoever_asks_for_nothing_gets_the_bare_result(world: World, door: str) -> None:
    verdict = world.ask(door, Asked("look_up", {"id": "A-1"}))
    assert verdict.result["id"] == "A-1"
    assert b"mcp.envelope" not in verdict.raw


@pytest.fixture(scope="module")
def giving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with serving(tmp_path_factory.mktemp("giving"), request.param) as world:
        yield world


@pytest.mark.covers("003.doors.default")
@pytest.mark.parametrize(
    ("giving", "door", "has_record"),
    [("wrap", "STDIO, envelope", False), *(("provenance", door, True) for door in DOORWAYS)],
    indirect=["giving"],
)
def test_an_operator_gives_everybody_envelopes(giving: World, door: str, *, has_record: bool) -> None:
    envelope = giving.ask(door, Asked("look_up", {"id": "A-1"})).envelope
    assert envelope["schema_version"] == "mcp.envelope.v0.1"
    assert (envelope["provenance"] is not None) is has_record


@pytest.mark.covers("003.doors.signed")
def test_a_configured_key_signs_every_record_and_the_checker_finds_what_was_altered(tmp_path: Path) -> None:
    assert run("keys", "signing", "ours.pem", cwd=tmp_path).code == 0
    asked = Asked("look_up", {"id": "A-1"}, controls=FULL)
    with serving(tmp_path, signing='signing_key = "ours.pem"') as world:
        verdicts = {door: world.ask(door, asked) for door in DOORWAYS}
    assert len({in_bytes(verdict.envelope) for verdict in verdicts.values()}) == 1
    envelope = verdicts["POST /execute"].envelope
    (tmp_path / "good.json").write_text(json.dumps(envelope))
    envelope["result"]["cents"] = 1
    (tmp_path / "bad.json").write_text(json.dumps(envelope))
    assert run("envelope", "check", "good.json", "--key", "ours.pem.pub", cwd=tmp_path).code == 0
    assert run("envelope", "check", "bad.json", "--key", "ours.pem.pub", cwd=tmp_path).code == 1
