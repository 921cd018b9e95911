"""Resources and prompts as functions declare them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from portbook import Blob, Message, NotFound, Text, ToolError, Toolset
from portbook.errors import Failed, Reason
from portbook.testing import TestClient
from portbook.tools.spec import BadTool, ToolSpec


def declared(toolset: Toolset, kind: str = "resource") -> ToolSpec:
    return next(spec for spec in toolset.specs() if spec.kind == kind)


def run(spec: ToolSpec, **arguments: Any) -> Any:
    assert spec.function is not None
    result = spec.function(arguments)
    return asyncio.run(result) if spec.is_async else result


@pytest.mark.parametrize(
    ("returned", "parts"),
    [
        ("text", [{"text": "text"}]),
        (b"\x00", [{"blob": "AA=="}]),
        ({"a": 1}, [{"text": '{"a":1}'}]),
        (5, [{"text": "5"}]),
        ([Blob("a", "text/x"), b"b"], [{"mimeType": "text/x", "text": "a"}, {"blob": "Yg=="}]),
        (Blob("a", uri="other://a"), [{"uri": "other://a", "text": "a"}]),
    ],
)
def test_what_a_resource_returns_becomes_its_parts(returned: Any, parts: Any) -> None:
    toolset = Toolset("t")

    @toolset.resource("a://b")
    def read():  # type: ignore[no-untyped-def]
        return returned

    assert run(declared(toolset)) == parts


def test_a_mime_type_is_that_of_every_part_that_has_none_of_its_own() -> None:
    toolset = Toolset("t")

    @toolset.resource("a://b", mime_type="text/plain")
    async def read() -> list[Blob]:
        return [Blob("x"), Blob("y", "text/y")]

    assert [part["mimeType"] for part in run(declared(toolset))] == ["text/plain", "text/y"]


@pytest.mark.parametrize(
    ("returned", "messages"),
    [
        ("hi", [{"role": "user", "content": {"type": "text", "text": "hi"}}]),
        (Message("hi", "assistant"), [{"role": "assistant", "content": {"type": "text", "text": "hi"}}]),
        ([Text("a"), Message("b")], [{"role": "user", "content": {"type": "text", "text": t}} for t in "ab"]),
        ([], []),
    ],
)
def test_what_a_prompt_returns_becomes_messages(returned: Any, messages: Any) -> None:
    toolset = Toolset("t")

    @toolset.prompt
    def say():  # type: ignore[no-untyped-def]
        return returned

    assert run(declared(toolset, "prompt")) == messages


@pytest.mark.parametrize("returned", [5, {"a": 1}, [object()], [["nested"]]])
def test_a_prompt_that_returns_something_else_breaks_its_promise(returned: Any) -> None:
    toolset = Toolset("t")

    @toolset.prompt
    def say():  # type: ignore[no-untyped-def]
        return returned

    with pytest.raises(Failed):
        run(declared(toolset, "prompt"))


def _two_uris(toolset: Toolset) -> None:
    toolset.resource("a://b")(lambda: "x")
    toolset.resource("a://b")(lambda: "y")


def _other_names(toolset: Toolset) -> None:
    @toolset.resource("a://{x}")
    def read(y: str) -> str:
        return y

    toolset.specs()


def _a_number(toolset: Toolset) -> None:
    @toolset.prompt
    def say(count: int) -> str:
        return str(count)

    toolset.specs()


def _two_prompts(toolset: Toolset) -> None:
    toolset.prompt(name="x")(lambda: "x")
    toolset.prompt(name="x")(lambda: "y")


def _no_name(toolset: Toolset) -> None:
    toolset.prompt(name="")(lambda: "x")


def _completes_nothing(toolset: Toolset) -> None:
    @toolset.prompt(complete={"other": ["x"]})
    def say(argument: str) -> str:
        return argument

    toolset.specs()


def _less_than_no_time(toolset: Toolset) -> None:
    toolset.resource("a://b", cache_ms=-1)(lambda: "x")


def _unknown(toolset: Toolset) -> None:
    toolset.disable("no_such")


@pytest.mark.parametrize(
    "declare",
    [
        _two_uris,
        _other_names,
        _a_number,
        _two_prompts,
        _no_name,
        _completes_nothing,
        _less_than_no_time,
        _unknown,
    ],
)
def test_what_cannot_be_meant_is_refused_when_it_is_declared(declare: Callable[[Toolset], None]) -> None:
    with pytest.raises(BadTool):
        declare(Toolset("t"))


def test_watchers_hear_of_changes_once() -> None:
    toolset = Toolset("t")
    toolset.tool(name="x")(lambda: 1)
    heard: list[object] = []
    unwatch = toolset.watch(heard.append)
    toolset.enable("x")
    toolset.disable("x")
    toolset.disable("x")
    toolset.updated("a://b")
    unwatch()
    toolset.enable("x")
    assert heard == [("tool", None), ("resource", "a://b")]


def test_an_author_says_how_long_a_resource_may_be_kept() -> None:
    toolset = Toolset("t")
    toolset.resource("a://live")(lambda: "x")
    toolset.resource("a://still", cache_ms=5000)(lambda: "x")
    kept = {spec.name: spec.cache_ms for spec in toolset.specs() if spec.kind == "resource"}
    assert kept == {"a://live": 0, "a://still": 5000}


# -- where nothing is


def nothing_there() -> str:
    raise NotFound("no such note")


async def nothing_there_later() -> str:
    raise NotFound("no such note")


@pytest.mark.parametrize("function", [nothing_there, nothing_there_later, lambda: None])
def test_a_resource_says_that_nothing_is_there(function: Callable[..., Any]) -> None:
    toolset = Toolset("t")
    toolset.resource("a://b")(function)
    with pytest.raises(Failed) as raised:
        run(declared(toolset))
    assert raised.value.reason is Reason.UNKNOWN_RESOURCE
    assert "no such note" not in (raised.value.note or "")


NOTES = {"monday": "Water the plants."}
notes = Toolset("notes")


@notes.resource("notes://raised/{day}")
def raised(day: str) -> str:
    if day not in NOTES:
        raise NotFound(day)
    return NOTES[day]


@notes.resource("notes://none/{day}")
async def none(day: str) -> str | None:
    return NOTES.get(day)


@notes.tool(effect="read")
def note(day: str) -> str:
    raise NotFound("no such note")


@notes.tool(effect="read")
def silent() -> str:
    raise ToolError


@pytest.mark.parametrize("kind", ["raised", "none"])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_caller_of_a_resource_that_is_not_there_gets_the_official_error(revision: str, kind: str) -> None:
    with TestClient(notes, revision=revision) as client:
        uri = f"notes://{kind}/friday"
        result = client.read(uri)
        assert result.answer["error"]["code"] == (-32002 if revision == "2025-11-25" else -32602)
        assert result.details["uri"] == uri
        assert (result.reason, result.executed) == ("UNKNOWN_RESOURCE", True)
        assert client.read(f"notes://{kind}/monday").text == "Water the plants."


def test_the_model_reads_the_words_of_a_tool_that_failed_and_nothing_else() -> None:
    with TestClient(notes, revision="2025-11-25") as client:
        result = client.call("note", day="friday")
        assert (result.answer["result"]["isError"], result.text) == (True, "no such note")
        assert result.reason == "TOOL_ERROR"
        assert client.call("silent").text.startswith("The tool reported an error of its own.")
