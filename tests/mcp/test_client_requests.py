"""Answers of a client to what it was asked on its connection, and to what it was not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.mcp_answers import ALL
from support.mcp_http_client import EVERYTHING, run, serving


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"action": "maybe"}},
        {"result": {"action": "accept", "content": {"name": 5}}},
        {"result": {"roots": []}},
        {"error": {"code": -1, "message": "I will not"}},
    ],
    ids=json.dumps,
)
def test_a_client_that_answers_otherwise_than_it_should_fails_the_call_and_nothing_else(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25", **ALL)
            exchange = client.ask("tools/call", {"name": "test_input_required_result_elicitation"})
            await exchange.until(lambda: bool(exchange.messages))
            request = exchange.messages[0]
            assert (await client.send({"jsonrpc": "2.0", "id": request["id"], **answer})).status == 202
            result = (await exchange.ended()).messages[-1]["result"]
            assert result["isError"] is True
            assert result["_meta"]["portbook/refusal"]["reason"] == "NO_ANSWER"
            assert (await client.ask("ping").ended()).status == 200

    run(main())


def test_an_answer_to_what_was_never_asked_is_recorded_and_does_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25", **ALL)
            before = len(client.sink.records)
            assert (await client.send({"jsonrpc": "2.0", "id": "nobody", "result": {}})).status == 202
            assert len(client.sink.records) == before + 1

    run(main())


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"action": "decline"}, "error": {"code": -1, "message": "both"}},
        {"jsonrpc": "1.0", "result": {"action": "decline"}},
    ],
    ids=json.dumps,
)
def test_an_answer_that_breaks_json_rpc_fails_the_call_and_has_a_record(
    tmp_path: Path, answer: dict[str, Any]
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25", **ALL)
            exchange = client.ask("tools/call", {"name": "test_input_required_result_elicitation"})
            await exchange.until(lambda: bool(exchange.messages))
            asked = exchange.messages[0]["id"]
            assert (await client.send({"jsonrpc": "2.0", "id": asked, **answer})).status == 202
            result = (await exchange.ended()).messages[-1]["result"]
            assert result["_meta"]["portbook/refusal"]["reason"] == "NO_ANSWER"
            reasons = [record["error"]["reason"] for record in client.sink.records if record["error"]]
            assert sorted(reasons) == ["NOT_JSONRPC", "NO_ANSWER"]

    run(main())
