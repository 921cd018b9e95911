"""What a call asks of a server: its own names, our `_meta`, and the client's capabilities that it may use."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from portbook.executors.mcp_server_request_and_result import UpstreamRequest, capabilities_of, params_of
from portbook.model import Identity, Run
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.upstream_entries import UpstreamEntry
from support.fake_upstream import FakeLink, connected


class AskedClient:
    """A client that declares what it can do."""

    answers_later = True
    capabilities: dict[str, Any]

    def __init__(self, **capabilities: Any) -> None:
        self.capabilities = capabilities

    def hears(self, level: str) -> bool:
        return level == "error"


def request(
    spec: ToolSpec, arguments: dict[str, Any], revision: str = "2025-11-25", client: AskedClient | None = None
) -> UpstreamRequest:
    async def main() -> UpstreamRequest:
        connection = await connected(FakeLink())
        connection.agree(REVISIONS[revision])
        unused, entry = cast("Any", None), spec.upstream
        assert entry is not None
        run = Run(5000, Identity("r", "t", "0" * 32), reach=lambda: cast("Any", client))
        tool = Tool(spec, unused, unused, "listed")
        return UpstreamRequest(tool, entry, arguments, run, connection, frozenset({"elicitation"}))

    return asyncio.run(main())


def entry(name: str, kind: Any = "tool", **more: Any) -> ToolSpec:
    found = UpstreamEntry("s", name, more.pop("definition", {}))
    return ToolSpec("s.x", "", {}, True, Effect.READ, upstream=found, kind=kind, **more)


def test_each_kind_is_requested_in_the_servers_own_words() -> None:
    typed = {"name": "city", "value": "Be", "given": {"country": "CH"}}
    cases: list[tuple[ToolSpec, dict[str, Any], str, dict[str, Any]]] = [
        (entry("echo"), {"a": 1}, "tools/call", {"name": "echo", "arguments": {"a": 1}}),
        (entry("hello", "prompt"), {}, "prompts/get", {"name": "hello", "arguments": {}}),
        (entry("file:///{name}", "resource"), {"name": "x y"}, "resources/read", {"uri": "file:///x%20y"}),
        (
            entry("hello", "completion", completes="prompt"),
            typed,
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "hello"},
                "argument": {"name": "city", "value": "Be"},
                "context": {"arguments": {"country": "CH"}},
            },
        ),
    ]
    for spec, arguments, method, wanted in cases:
        asked = request(spec, arguments)
        params = params_of(asked, 7, None, None)
        params.pop("_meta")
        assert (asked.method, params) == (method, wanted)


def test_a_tool_that_runs_as_a_task_alone_is_called_as_one() -> None:
    definition = {"execution": {"taskSupport": "required"}}
    assert params_of(request(entry("slow", definition=definition), {}), 1, None, None)["task"] == {
        "ttl": 5000
    }


def test_answers_and_state_of_a_later_round_go_to_a_server_without_a_connection_alone() -> None:
    answers = {"q": {"action": "accept"}}
    for revision, wanted in (("2025-11-25", None), ("2026-07-28", answers)):
        params = params_of(request(entry("echo"), {}, revision), 1, cast("Any", answers), "s")
        assert (params.get("inputResponses"), params["requestState"]) == (wanted, "s")


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_level_is_asked_for_with_each_request_where_the_revision_has_that(revision: str) -> None:
    meta = cast(
        "dict[str, Any]",
        params_of(request(entry("echo"), {}, revision, AskedClient()), 1, None, None)["_meta"],
    )
    wanted = None if revision == "2025-11-25" else "error"
    assert meta.get("io.modelcontextprotocol/logLevel") == wanted


def test_a_server_learns_of_the_capabilities_that_it_may_use_alone() -> None:
    client = AskedClient(elicitation={"form": {}}, sampling={})
    assert capabilities_of(request(entry("echo"), {}, client=client)) == {"elicitation": {"form": {}}}
