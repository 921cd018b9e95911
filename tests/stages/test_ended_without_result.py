"""The failure of a call whose tool raised."""

from __future__ import annotations

from portbook import ToolError, Toolset
from portbook.testing import TestClient

toolset = Toolset("rooms")


@toolset.tool(effect="read")
def full() -> int:
    raise ToolError("No room.", code="ROOM.FULL", data={"token": "hunter2hunter2"}, retryable=True)


@toolset.tool(effect="read")
def odd() -> int:
    raise ToolError("No room.", data={1, 2})  # type: ignore[arg-type]


@toolset.prompt
def ask() -> str:
    raise ToolError("No room.", code="ROOM.FULL")


def test_a_stated_error_is_told_and_redacted() -> None:
    with TestClient(toolset) as client:
        result = client.call("full")
        assert (result.reason, result.message, result.code) == ("TOOL_ERROR", "No room.", "ROOM.FULL")
        assert (result.data, result.is_retryable, result.is_redacted) == ({"token": "[redacted]"}, True, True)
        assert result.exception is None
        assert result.record["error"]["note"].startswith("ToolError at test_ended_without_result.py:")


def test_data_that_is_not_json_is_a_crash_that_says_so() -> None:
    with TestClient(toolset) as client:
        result = client.call("odd")
        assert (result.reason, result.code) == ("TOOL_FAILED", None)
        assert result.message == "The tool failed: the data of its error is not JSON."
        assert result.record["error"]["note"].endswith("; the data of its error is not JSON")


def test_a_prompt_states_its_error_as_a_tool_does() -> None:
    with TestClient(toolset) as client:
        result = client.prompt("ask")
        assert (result.reason, result.message, result.code) == ("TOOL_ERROR", "No room.", "ROOM.FULL")
        assert result.answer["error"]["code"] == -31422
