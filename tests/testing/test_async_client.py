"""`AsyncTestClient`: the same for tests that are coroutines, and calls side by side."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from portbook import Toolset
from portbook.testing import AsyncTestClient, TestClient
from support.shop_toolset import LARGE_REFUNDS, toolset


def test_it_does_all_that_the_plain_client_does() -> None:
    async def main() -> None:
        async with AsyncTestClient(toolset, policy=LARGE_REFUNDS, callers=["ada"]) as client:
            ada = client.as_caller("ada")
            result = await ada.call("refund", order=5, cents=20_000)
            assert result.reason == "APPROVAL_REQUIRED"
            await client.approve(result)
            assert (await ada.call("refund", {"order": 5}, cents=20_000)).value == {"refunded": 20_000}
            assert (await ada.call("refund", order=5, cents=20_000)).reason == "APPROVAL_REQUIRED"
            await client.deny(reason="once is enough")
            assert (await client.read("shop://3")).text == "shelf 3"
            assert (await client.prompt("greeting", name="Ada")).text == "Greet Ada."
            assert "refund" in await client.tools()
            assert [*await client.resources()] == ["shop://{shelf}"]
            assert [*await client.prompts()] == ["greeting"]
            assert (await client.request("ping"))["error"]["data"]["reason"] == "UNKNOWN_METHOD"
            assert (await client.send(b"{"))["error"]["data"]["reason"] == "NOT_JSON"
        await client.close()
        with pytest.raises(RuntimeError, match="client is closed"):
            await client.call("stock")

    asyncio.run(main())


def test_calls_side_by_side_keep_their_own_records_and_messages() -> None:
    async def main() -> None:
        async with AsyncTestClient(toolset, answers={"size": "L"}) as client:
            stock, fit, broken = await asyncio.gather(
                client.call("stock"), client.call("fit"), client.call("broken")
            )
            assert [record["metadata"]["toolId"] for record in stock.records] == ["mcp.tool:stock"]
            assert [record["metadata"]["toolId"] for record in fit.records] == ["mcp.tool:fit"] * 2
            assert len(stock.logs) == 2
            assert (fit.logs, broken.logs) == ([], [])
            assert (stock.exception, fit.exception) == (None, None)
            assert isinstance(broken.exception, KeyError)
            assert len(client.records) == 4

    asyncio.run(main())


def test_calls_that_end_together_keep_their_own_records() -> None:
    async def main() -> None:
        gate = asyncio.Event()
        tools = Toolset("gate")

        @tools.tool
        async def pass_gate(number: int) -> int:
            await gate.wait()
            return number

        async with AsyncTestClient(tools) as client:
            calls = [asyncio.create_task(client.call("pass_gate", number=number)) for number in range(5)]
            await asyncio.sleep(0.05)
            gate.set()
            for number, result in enumerate(await asyncio.gather(*calls)):
                assert result.value == number
                assert len(result.records) == 1

    asyncio.run(main())


def test_an_approval_can_be_given_while_the_call_waits() -> None:
    async def main() -> None:
        async with AsyncTestClient(toolset, policy=LARGE_REFUNDS) as client:
            patient = client.with_meta({"portbook/wait_ms": 30_000})
            waiting = asyncio.create_task(patient.call("refund", order=5, cents=20_000))
            while not client.pending:
                await asyncio.sleep(0)
            await client.approve()
            assert (await waiting).value == {"refunded": 20_000}

    asyncio.run(main())


def test_without_asyncio_it_says_that_it_needs_it() -> None:
    client = AsyncTestClient(toolset)
    for coroutine in (client.__aenter__(), client.call("stock"), client.send(b"{"), client.close()):
        with pytest.raises(RuntimeError, match=r"AsyncTestClient needs asyncio: .* anyio's asyncio backend"):
            coroutine.send(None)  # as another event loop runs it
    asyncio.run(client.close())


def test_both_clients_have_the_same_methods() -> None:
    def signatures(made: type) -> dict[str, str]:
        return {
            name: str(inspect.signature(each))
            for name, each in vars(made).items()
            if inspect.isfunction(each) and not name.startswith("_")
        }

    assert signatures(AsyncTestClient) == signatures(TestClient)
