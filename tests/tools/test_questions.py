"""Pages and forms that a tool asks for, and answers of the type that was asked for, in both eras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_client import Client, capable, run, serving

PAGES = """
from dataclasses import dataclass
from portbook import Context, Toolset
toolset = Toolset('pages')
@dataclass
class City:
    city: str
    nights: int = 2
@toolset.tool(effect='write')
async def log_in(context: Context) -> str:
    answer = await context.open_page('Log in', 'https://example.com/login?as=ada')
    return answer.action
@toolset.tool(effect='write')
async def book(ctx: Context) -> str:
    answer = await ctx.elicit('Where to?', response_type=City)
    return f'{answer.data.city} for {answer.content.nights}' if answer.is_accepted else 'nothing'
"""


async def asked(client: Client, revision: str, tool: str, answer: Any, **declared: Any) -> tuple[Any, Any]:
    """Call a tool that asks one thing; return what it asked, and its result."""
    call: dict[str, Any] = {"name": tool, "arguments": {}}
    await client.open(revision, **declared)
    if revision == "2026-07-28":
        call |= capable(**declared)
        first = await client.result("tools/call", call)
        [(name, question)] = first["inputRequests"].items()
        given = {"inputResponses": {name: answer}, "requestState": first["requestState"]}
        return question["params"], await client.result("tools/call", {**call, **given})
    exchange = client.ask("tools/call", call)
    await exchange.until(lambda: bool(exchange.messages))
    await client.reply(exchange.messages[0], answer)
    return exchange.messages[0]["params"], (await exchange.ended()).messages[-1]["result"]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_page_has_an_id_that_stays_the_same(tmp_path: Path, revision: str) -> None:
    tools = tmp_path / "pages_tools.py"
    tools.write_text(PAGES)

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            names = set()
            for _ in range(2):
                question, result = await asked(
                    client, revision, "log_in", {"action": "accept"}, elicitation={"url": {}}
                )
                assert (question["mode"], question["url"]) == ("url", "https://example.com/login?as=ada")
                assert result["content"][0]["text"] == "accept"
                names.add(question["elicitationId"])
            assert len(names) == 1
            assert all(len(name) == 32 for name in names)  # and not taken for a secret

    run(main())


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"action": "accept", "content": {"city": "Oslo"}}, "Oslo for 2"),
        ({"action": "accept", "content": {"city": "Oslo", "nights": 3}}, "Oslo for 3"),
        ({"action": "decline"}, "nothing"),
    ],
)
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_an_answer_is_one_of_the_type_that_was_asked_for_in_both_eras(
    tmp_path: Path, revision: str, answer: Any, said: str
) -> None:
    tools = tmp_path / "pages_tools.py"
    tools.write_text(PAGES)

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            question, result = await asked(client, revision, "book", answer, elicitation={})
            assert question["requestedSchema"]["required"] == ["city"]
            assert result["content"][0]["text"] == said

    run(main())


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_a_form_can_be_filled_in_with_a_fraction(tmp_path: Path, revision: str) -> None:
    tools = tmp_path / "weighing.py"
    tools.write_text(
        "from portbook import Context, Toolset\n"
        "toolset = Toolset('weighing')\n"
        "@toolset.tool(effect='read')\n"
        "async def weigh(context: Context) -> float:\n"
        "    schema = {'properties': {'kg': {'type': 'number'}}, 'required': ['kg']}\n"
        "    return (await context.elicit('How heavy?', schema)).content['kg']\n"
    )
    answer = {"action": "accept", "content": {"kg": 1.5}}

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open(revision, elicitation={})
            params: dict[str, Any] = {"name": "weigh", "arguments": {}}
            if revision == "2026-07-28":
                params |= capable(elicitation={})
                asked = await client.result("tools/call", params)
                given = {"inputResponses": {"question_1": answer}, "requestState": asked["requestState"]}
                result = await client.result("tools/call", {**params, **given})
            else:
                exchange = client.ask("tools/call", params)
                await exchange.until(lambda: bool(exchange.messages))
                await client.reply(exchange.messages[0], answer)
                result = (await exchange.ended()).messages[-1]["result"]
            assert result["content"][0]["text"] == "1.5"

    run(main())
