"""What a tool can say of its call, as authors are used to write it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import CoroutineType
from typing import Any

import pytest
from pydantic import BaseModel

from portbook import Context, Form, Toolset
from portbook.errors import Failed, Reason
from portbook.executors.python import PythonExecutor
from portbook.model import Identity, Run
from portbook.testing import TestClient
from portbook.tools.catalog import Catalog, Tool
from support.listening_client import Listener


def serve(function: Callable[..., Any], **options: Any) -> Tool:
    toolset = Toolset("test")
    toolset.tool(name="tool", effect="read", **options)(function)
    (tool,) = Catalog(toolset.specs())
    return tool


def executed(function: Callable[..., Any], client: Listener | None = None, **options: Any) -> Any:
    client = client or Listener()
    identity = Identity("request-1", "trace-1", "span-1")
    run = Run(20_000, identity, "session-1", None, client.report, lambda: client)  # type: ignore[arg-type,return-value]

    async def main() -> Any:
        result = PythonExecutor(workers=1).execute(serve(function, **options), {}, run)
        return await result if isinstance(result, CoroutineType) else result

    return asyncio.run(main())


def test_what_is_said_may_be_awaited_or_not() -> None:
    async def awaiting(ctx: Context) -> None:
        await ctx.progress(1, 2, "a")
        await ctx.log("notice", "b", "from")
        await ctx.report_progress(3)
        for say in (ctx.debug, ctx.info, ctx.warning, ctx.error):
            await say(say.__name__)

    def plain(ctx: Context) -> None:
        ctx.progress(1, 2, "a")
        ctx.log("notice", "b", "from")
        ctx.report_progress(3)
        for say in (ctx.debug, ctx.info, ctx.warning, ctx.error):
            say(say.__name__)

    levels = [(level, level, None) for level in ("debug", "info", "warning", "error")]
    for function in (awaiting, plain):
        client = Listener()
        executed(function, client)
        assert client.heard == [(1, 2, "a"), ("notice", "b", "from"), (3, None, None), *levels]


def test_a_call_has_an_id_and_a_session() -> None:
    def plain(ctx: Context) -> list[str | None]:
        return [ctx.request_id, ctx.session_id]

    async def later(ctx: Context) -> list[str | None]:
        return [ctx.request_id, ctx.session_id]

    assert executed(plain) == executed(later) == ["request-1", "session-1"]
    assert executed(plain, inline=True) == ["request-1", "session-1"]
    assert (Context().request_id, Context().session_id) == (None, None)


async def _helper() -> str:
    return "never seen"


def _asks(ctx: Context) -> str:
    return f"Hello {ctx.elicit('Who?')}"


def _asks_several(ctx: Context) -> str:
    return str(ctx.ask(who=Form("Who?")))


def _samples(ctx: Context) -> str:
    return str(ctx.sample("Say"))


def _opens(ctx: Context) -> str:
    return str(ctx.open_page("Pay", "https://example.com"))


def _wants_roots(ctx: Context) -> str:
    return str(ctx.roots())


async def _asks_later(ctx: Context) -> str:
    ctx.elicit("Sure?")  # type: ignore[unused-coroutine]
    return "done"


def _returns_a_coroutine():  # type: ignore[no-untyped-def]
    return _helper()


async def _returns_a_coroutine_later() -> str:
    return _helper()  # type: ignore[return-value]


@pytest.mark.parametrize(
    "function",
    [
        _asks,
        _asks_several,
        _samples,
        _opens,
        _wants_roots,
        _asks_later,
        _returns_a_coroutine,
        _returns_a_coroutine_later,
    ],
)
def test_a_forgotten_await_fails_the_tool_and_says_so(function: Callable[..., Any]) -> None:
    client = Listener()
    with pytest.raises(Failed) as raised:
        executed(function, client)
    assert raised.value.reason is Reason.TOOL_FAILED
    assert "write `async def` and `await`" in str(raised.value.details["error"])
    assert function.__name__ in (raised.value.note or "")
    assert client.heard == []


def test_questions_may_be_awaited_together_or_left_when_the_tool_raises() -> None:
    async def together(ctx: Context) -> int:
        return len(await asyncio.gather(ctx.elicit("a"), asyncio.create_task(ctx.elicit("b"))))

    async def raising(ctx: Context) -> None:
        ctx.elicit("a")  # type: ignore[unused-coroutine]
        raise LookupError

    client = Listener()
    assert executed(together, client) == 2
    assert sorted(client.heard) == [("question_1", "a"), ("question_2", "b")]
    with pytest.raises(LookupError):
        executed(raising)


class Nothing(BaseModel):
    """A form without a field."""


@pytest.mark.parametrize(
    "how", [lambda ctx: ctx.elicit("?", Nothing), lambda ctx: ctx.elicit("?", response_type=Nothing)]
)
def test_an_answer_is_one_of_the_type_that_was_asked_for(how: Callable[[Context], Any]) -> None:
    async def function(ctx: Context) -> bool:
        return isinstance((await how(ctx)).content, Nothing)

    assert executed(function) is True


def test_a_tool_learns_the_name_of_its_caller_by_the_key() -> None:
    toolset = Toolset("x")

    @toolset.tool(effect="read")
    def who(context: Context) -> str | None:
        return context.caller

    with TestClient(toolset, callers={"ada": ["*"]}) as client:
        assert client.as_caller("ada").call("who").value == "ada"
    assert Context().caller is None
