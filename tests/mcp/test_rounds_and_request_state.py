"""What a caller brings along from round to round: its state and its answers, each for its own question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.mcp_answers import ALL, ANSWERS, SAMPLED
from support.mcp_http_client import EVERYTHING, Client, capable, run, serving


async def first_round(client: Client, tool: str = "test_input_required_result_request_state") -> Any:
    return await client.result("tools/call", {"name": tool, "arguments": {}, **capable(**ALL)})


OK = {"confirm": {"action": "accept", "content": {"ok": True}}}


@pytest.mark.covers("design.ask.state")
@pytest.mark.parametrize(
    "change",
    [
        lambda state: state + "x",
        lambda state: "x" + state,
        lambda state: state[:-4] + "AAAA",
        lambda state: state.partition(".")[0] + ".",
        lambda state: "",
        lambda state: "é.é",
        lambda state: "." * 300_000,
    ],
)
def test_a_state_that_was_changed_is_refused_before_anything_runs(tmp_path: Path, change: Any) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            state = (await first_round(client))["requestState"]
            params = {"name": "test_input_required_result_request_state", "arguments": {}, **capable(**ALL)}
            error = await client.error(
                "tools/call", {**params, "inputResponses": OK, "requestState": change(state)}
            )
            assert error["code"] == -32602
            assert client.sink.records[-1]["error"]["executed"] is False

    run(main())


def test_a_state_is_good_for_its_own_call_and_caller_alone(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            state = (await first_round(client))["requestState"]
            other = {"name": "test_input_required_result_tampered_state", "arguments": {}, **capable(**ALL)}
            given = {"inputResponses": OK, "requestState": state}
            assert (await client.error("tools/call", {**other, **given}))["code"] == -32602
            own = {**other, "name": "test_input_required_result_request_state"}
            client.key = "somebody else's"
            assert (await client.error("tools/call", {**own, **given}))["code"] == -32602
            client.key = None
            assert (await client.result("tools/call", {**own, **given}))["resultType"] == "complete"

    run(main())


def test_a_round_can_be_answered_by_another_process(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            state = (await first_round(client))["requestState"]
        async with serving(tmp_path, EVERYTHING) as other:
            await other.open("2026-07-28")
            params = {"name": "test_input_required_result_request_state", "arguments": {}, **capable(**ALL)}
            given = {"inputResponses": OK, "requestState": state}
            assert (await other.result("tools/call", {**params, **given}))["resultType"] == "complete"

    run(main())


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"wrong": ANSWERS["elicitation/create"]}, "input_required"),
        ({"user_name": ANSWERS["roots/list"]}, "input_required"),
        ({"user_name": {"action": "accept", "content": {}}}, "input_required"),
        ({"user_name": ANSWERS["elicitation/create"], "more": SAMPLED}, "complete"),
        ({"user_name": {"action": "decline"}}, "complete"),
    ],
)
def test_what_is_not_answered_is_asked_again_and_what_was_not_asked_is_ignored(
    tmp_path: Path, answers: Any, expected: str
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            params = {"name": "test_input_required_result_elicitation", **capable(**ALL)}
            result = await client.result("tools/call", {**params, "inputResponses": answers})
            assert result["resultType"] == expected

    run(main())


def test_an_answer_counts_for_the_question_that_it_was_given_to_and_for_no_other(tmp_path: Path) -> None:
    tools = tmp_path / "rising.py"
    tools.write_text(
        "from portbook import Context, Toolset\n"
        "toolset = Toolset('rising')\n"
        "prices = [10, 10, 10000]\n"
        "@toolset.tool(effect='write')\n"
        "async def pay(context: Context) -> str:\n"
        "    price = prices.pop(0) if len(prices) > 1 else prices[0]\n"
        "    first = await context.elicit('Pay?')\n"
        "    await context.elicit(f'Pay {price}?')\n"
        "    return f'paid {price}'\n"
    )
    accept = {"action": "accept", "content": {}}

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open("2026-07-28")
            params: dict[str, Any] = {"name": "pay", **capable(elicitation={})}
            questions: list[str] = []
            result = await client.result("tools/call", params)
            while result["resultType"] == "input_required":
                [(name, question)] = result["inputRequests"].items()
                questions.append(question["params"]["message"])
                given = {"inputResponses": {name: accept}, "requestState": result["requestState"]}
                result = await client.result("tools/call", {**params, **given})
            assert questions == ["Pay?", "Pay 10?", "Pay 10000?"]
            assert result["structuredContent"] == "paid 10000"

    run(main())
