"""From a server's answer to a result or a failure."""

from __future__ import annotations

from typing import Any, cast

import pytest

from portbook.errors import Failed, Finding, Reason, Refused
from portbook.executors.mcp_server_request_and_result import ending_by, result_in
from portbook.model import Kind
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, ToolSpec
from portbook.upstreams.message_checks_and_meta import BadAnswer, RpcError
from portbook.upstreams.transport import ConnectionLost, NotSent


def entry(kind: Kind = "tool") -> Tool:
    return Tool(
        ToolSpec("a", "", {}, True, Effect.READ, kind=kind), cast("Any", None), cast("Any", None), "a"
    )


TEXT = [{"type": "text", "text": "x"}]


@pytest.mark.parametrize(
    ("kind", "result", "value"),
    [
        ("tool", {"content": TEXT}, {"content": TEXT}),
        (
            "tool",
            {"content": TEXT, "structuredContent": 5, "_meta": {"io.modelcontextprotocol/x": 1, "own": 2}},
            {"content": TEXT, "structuredContent": 5, "_meta": {"own": 2}},
        ),
        ("resource", {"contents": [{"uri": "a://b", "text": "x"}]}, [{"uri": "a://b", "text": "x"}]),
        ("prompt", {"messages": []}, []),
        ("completion", {"completion": {"values": ["a"]}}, {"values": ["a"]}),
    ],
)
def test_a_result_is_what_the_pipeline_takes(kind: Kind, result: Any, value: Any) -> None:
    assert result_in(result, entry(kind)) == value


def test_an_error_of_the_tool_keeps_its_content() -> None:
    with pytest.raises(Failed) as caught:
        result_in({"content": cast("Any", TEXT), "isError": True}, entry())
    assert caught.value.reason is Reason.TOOL_ERROR
    assert caught.value.details == {"upstream_content": TEXT, "error": "x"}


@pytest.mark.parametrize(
    ("error", "kind", "ending", "reason"),
    [
        (RpcError(-32050, "no"), "tool", Failed, Reason.UPSTREAM_ERROR),
        (RpcError(-32002, "no"), "resource", Failed, Reason.UNKNOWN_RESOURCE),
        (RpcError(-32002, "no"), "tool", Failed, Reason.UPSTREAM_ERROR),
        (
            RpcError(-32021, "no", {"requiredCapabilities": {"roots": {}}}),
            *("tool", Failed, Reason.MISSING_CAPABILITY),
        ),
        (
            RpcError(-32021, "no", {"requiredCapabilities": {"obey": {}}}),
            *("tool", Failed, Reason.UPSTREAM_ERROR),
        ),
        (BadAnswer((Finding("/a", "m", "k", ""),)), "tool", Failed, Reason.BAD_RESULT),
        (ConnectionLost("gone"), "tool", Failed, Reason.UPSTREAM_ERROR),
        (NotSent("never"), "tool", Refused, Reason.UPSTREAM_ERROR),
    ],
)
def test_only_what_was_not_sent_is_refused(error: Any, kind: Kind, ending: type, reason: Reason) -> None:
    found = ending_by(error, entry(kind), REVISIONS["2026-07-28"])
    assert (type(found), found.reason) == (ending, reason)
