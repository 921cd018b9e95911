"""Calls of asset tools get the same verdict through every door, by their mere names included.

What is denied, or waits for a person, reaches no backend.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from support.every_door import ASSET_DOORWAYS, BARE_DOORWAYS, Asked, Doorway, Verdict
from support.portbook_process import run
from support.threaded_api import Upstream, upstream

KEY = "key of a guest"

POLICY = """
[docs]
enabled = false

[assets]
schemas = "schemas"
backend_url = "http://127.0.0.1:{port}"

[policy]
max_payload_bytes = 100
max_attempts = 3

[[policy.rules]]
name = "what leaves needs a person"
effects = ["write"]
action = "ask"

[[policy.rules]]
name = "no comparing"
tools = ["diff_*"]
action = "deny"

[[policy.rules]]
name = "not at night"
sessions = ["night-*"]
action = "deny"

[keys]
allow = [{{ name = "guest", sha256 = "{guest}", tools = ["get_schema"] }}]
"""

SCHEMA = {"version": "1.0", "type": "object"}
SENT = Asked("populate_backend", {"asset": {"name": "a"}})


class Served:
    """One folder with a library and its settings, and doors to it that are opened when first used."""

    def __init__(self, folder: Path, backend: Upstream, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.backend = backend
        self._stack = stack
        self._open: dict[tuple[str, str | None], Doorway] = {}

    def ask(self, door: str, asked: Asked, key: str | None = None) -> Verdict:
        if (door, key) not in self._open:
            self._open[door, key] = self._stack.enter_context(ASSET_DOORWAYS[door](self.folder, key))
        return self._open[door, key](asked)


@contextlib.contextmanager
def serving(folder: Path, settings: str) -> Iterator[Served]:
    with contextlib.ExitStack() as stack:
        backend = stack.enter_context(upstream())
        (folder / "schemas").mkdir()
        (folder / "schemas/synesthetic-asset.schema.json").write_text(json.dumps(SCHEMA))
        guest = hashlib.sha256(KEY.encode()).hexdigest()
        (folder / "portbook.toml").write_text(settings.format(port=backend.port, guest=guest))
        yield Served(folder, backend, stack)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("asset-verdicts"), POLICY) as served:
        yield served


class Case(NamedTuple):
    name: str
    asked: Asked
    reason: str
    key: str | None = None


AT_THE_CAP = {"name": "x" * (100 - len('{"name":""}'))}
OVER_THE_CAP = {"name": AT_THE_CAP["name"] + "x"}

CASES = [
    Case("a tool that reads", Asked("get_schema", {"name": "synesthetic-asset"}), "OK"),
    Case("a rule that denies", Asked("diff_assets", {"base": 1, "new": 2}), "POLICY_VIOLATION"),
    Case("denied, with wrong arguments", Asked("diff_assets", {}), "POLICY_VIOLATION"),
    Case("a session that is denied", Asked("list_schemas", session="night-1"), "POLICY_VIOLATION"),
    Case("the last attempt", Asked("list_schemas", attempt=3), "OK"),
    Case("one attempt more", Asked("list_schemas", attempt=4), "POLICY_VIOLATION"),
    Case("as large as the cap", Asked("get_schema", AT_THE_CAP), "OK"),
    Case("larger than the cap", Asked("get_schema", OVER_THE_CAP), "PAYLOAD_TOO_LARGE"),
    Case("wrong arguments", Asked("get_schema", {}), "BAD_ARGUMENTS"),
    Case("a call that needs a person", SENT, "APPROVAL_REQUIRED"),
    Case("a tool in the key's scope", Asked("get_schema", {"name": "none"}), "OK", KEY),
    Case("a tool beyond the key's scope", Asked("list_schemas"), "UNKNOWN_TOOL", KEY),
    Case("a wrong key", Asked("list_schemas"), "UNAUTHORIZED", "not a key"),
]

every_door = pytest.mark.parametrize("door", ASSET_DOORWAYS)


@every_door
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_an_asset_tool_gets_the_same_verdict_through_every_door(
    served: Served, door: str, case: Case
) -> None:
    assert served.ask(door, case.asked, case.key) == Verdict(case.reason)
    assert served.backend.seen == []


@every_door
def test_a_refusal_names_its_rule_through_every_door(served: Served, door: str) -> None:
    assert served.ask(door, Asked("diff_assets")).details["rule"] == "no comparing"


@every_door
def test_an_asset_is_sent_once_a_person_has_said_yes_and_only_that_one(tmp_path: Path, door: str) -> None:
    with serving(tmp_path, POLICY) as served:
        first = served.ask(door, SENT)
        assert first.reason == "APPROVAL_REQUIRED"
        ticket = str(first.details["approval_id"])
        assert served.ask(door, SENT).details["approval_id"] == ticket, "asking twice is asking for the same"
        redeeming = Asked(SENT.tool, SENT.arguments, approval=ticket)
        assert run("approvals", "approve", ticket, cwd=tmp_path).code == 0
        other = Asked(SENT.tool, {"asset": {"name": "b"}}, approval=ticket)
        assert served.ask(door, other).reason == "APPROVAL_REFUSED"
        assert served.backend.seen == []
        assert served.ask(door, redeeming).result["ok"] is True
        assert served.ask(door, redeeming).reason == "APPROVAL_REFUSED"
        assert served.backend.seen == [("POST", "/synesthetic-assets/")]


RATES = """
[assets]
schemas = "schemas"
[policy]
max_calls_per_minute = 2
"""


@every_door
def test_a_caller_that_makes_too_many_calls_is_told_when_to_come_back(tmp_path: Path, door: str) -> None:
    with serving(tmp_path, RATES) as served:
        told = [served.ask(door, Asked("list_schemas")) for _ in range(3)]
        assert [verdict.reason for verdict in told] == ["OK", "OK", "RATE_LIMITED"]
        assert 1 <= told[2].details["retry_after_s"] <= 30


ENVELOPES = """
[assets]
schemas = "schemas"
[envelope]
default = "provenance"
"""


@pytest.mark.parametrize("door", BARE_DOORWAYS)
def test_a_result_is_never_put_into_an_envelope_where_the_tool_is_called_by_its_name(
    tmp_path: Path, door: str
) -> None:
    with serving(tmp_path, ENVELOPES) as served:
        asked = Asked("get_schema", {"name": "synesthetic-asset"}, controls={"capture_provenance": True})
        assert served.ask(door, asked).result == {"ok": True, "schema": SCHEMA, "version": "1.0"}
