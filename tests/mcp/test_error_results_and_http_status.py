"""Refusals and failures as each revision has them: codes for programs, words for the model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.protocol.message_validation import RESULT
from support.every_revision import VALIDATOR, call, every_revision
from support.in_process_connection import Connection, params


@every_revision
def test_wrong_arguments_are_an_error_or_a_result_as_the_revision_has_it(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    answer = connection.request("tools/call", call(revision, "echo", text=5))
    if revision < "2025-11-25":
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"]["violations"][0]["pointer"] == "/text"
    else:
        assert answer["result"]["isError"] is True
        assert "/text: expected string" in answer["result"]["content"][0]["text"]
        assert answer["result"]["_meta"]["portbook/refusal"]["reason"] == "BAD_ARGUMENTS"
        VALIDATOR.validate("tools/call" + RESULT, answer["result"], revision)
    assert connection.sink.records[-1]["error"]["reason"] == "BAD_ARGUMENTS"  # type: ignore[index,call-overload]
    assert connection.sink.records[-1]["metadata"]["schemaVersion"] == revision  # type: ignore[index,call-overload]


@every_revision
@pytest.mark.parametrize(
    ("method", "given", "code"),
    [
        ("tools/call", {"name": "no_such_tool", "arguments": {}}, -32602),
        ("tools/call", {"name": "ECHO", "arguments": {"text": "x"}}, -32602),
        ("tools/call", {"arguments": {"text": "x"}}, -32602),
        ("tools/call", {"name": 5}, -32602),
        ("tools/call", {"name": "echo", "arguments": []}, -32602),
        ("tools/call", {"name": "echo", "arguments": None}, -32602),
        ("tools/list", {"cursor": 5}, -32602),
        ("tools/list", {"cursor": "bm9uc2Vuc2U="}, -32602),
        ("tools/list", {"cursor": "!"}, -32602),
        ("no/such", {}, -32601),
        ("resources/list", {}, -32601),
        ("sampling/createMessage", {}, -32601),
        ("tools/call ", {"name": "echo"}, -32601),
        ("tool\u017f/call", {"name": "echo"}, -32601),
    ],
)
def test_wrong_params_and_unknown_methods_have_codes_of_their_own(
    connection: Connection, revision: str, method: str, given: dict[str, Any], code: int
) -> None:
    connection.open(revision)
    answer = connection.request(method, params(revision, **given))
    assert answer["error"]["code"] == code
    VALIDATOR.validate("error", answer, revision)
    assert "no_such_tool" not in json.dumps(answer)


@every_revision
def test_a_failing_tool_is_a_result_for_the_model_without_its_words(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    for tool, arguments in (("raising", {"text": "x"}), ("hanging", {}), ("leaving", {})):
        answer = connection.request("tools/call", call(revision, tool, **arguments))
        assert answer["result"]["isError"] is True
        assert "canary" not in json.dumps(answer)
        VALIDATOR.validate("tools/call" + RESULT, answer["result"], revision)
