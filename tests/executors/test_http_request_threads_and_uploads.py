"""Requests of calls: composed at once, or in a thread and within the room for large ones."""

from __future__ import annotations

import asyncio
import base64
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.arguments_put_into_request import Composed, Composer
from portbook.apis.gateway import Gateway
from portbook.errors import Refused
from portbook.executors.http_request_threads_and_uploads import ComposedRequests, MemoryRoom
from portbook.model import JSONObject
from portbook.tools.http_operation import BodyPart, HttpOperation

UPLOAD = HttpOperation(
    "api",
    "https://a.example",
    "POST",
    "/",
    request="multipart/form-data",
    parts=(BodyPart("file", is_binary=True),),
)
JSON = HttpOperation("api", "https://a.example", "POST", "/")
FORM = replace(JSON, request="application/x-www-form-urlencoded")
QUERY = replace(JSON, method="GET")
LARGE = base64.b64encode(bytes(1024 * 1024)).decode()


def composed_in(
    monkeypatch: pytest.MonkeyPatch, operation: HttpOperation, arguments: Any, **gateway: Any
) -> tuple[Composed, bool]:
    """Return a request, and whether it was composed beside the event loop."""
    threads: list[threading.Thread] = []
    compose = Composer.compose

    def noted(composer: Composer, *given: Any) -> Composed:
        threads.append(threading.current_thread())
        return compose(composer, *given)

    monkeypatch.setattr(Composer, "compose", noted)

    async def main() -> Composed:
        requests = ComposedRequests({"api": Gateway("api", "https://a.example", **gateway)})
        async with requests.of("tool", operation, arguments) as composed:
            return composed

    composed = asyncio.run(main())
    return composed, threads != [threading.main_thread()]


@pytest.mark.parametrize(
    ("operation", "arguments", "is_at_once"),
    [
        (QUERY, {"q": "text", "list": [1, 2, {"a": None}]}, True),
        (JSON, {"q": "text"}, True),
        (QUERY, {"q": LARGE}, False),
        (QUERY, {"q": ["a"] * 10_000}, False),
        (JSON, {"q": {"deep": [{"deeper": LARGE}]}}, False),
        (UPLOAD, {"file": {"path": "a.bin"}}, False),
    ],
)
def test_only_what_is_small_and_names_no_file_is_composed_at_once(
    operation: HttpOperation, arguments: JSONObject, is_at_once: bool
) -> None:
    requests = ComposedRequests({"api": Gateway("api", "https://a.example")})
    composed = requests.at_once("tool", operation, arguments)
    assert composed == (Composer(operation).compose(arguments) if is_at_once else None)


def test_an_operation_that_replaced_another_one_is_composed_anew() -> None:
    requests = ComposedRequests({"api": Gateway("api", "https://a.example")})
    first = requests.at_once("tool", QUERY, {"q": "a"})
    assert first is not None
    second = requests.at_once("tool", replace(QUERY, path="/second"), {"q": "a"})
    assert second is not None
    assert (first.target, second.target) == ("/?q=a", "/second?q=a")


@pytest.mark.parametrize(
    ("operation", "arguments", "is_beside"),
    [
        (UPLOAD, {"file": "AA=="}, False),
        (UPLOAD, {"file": LARGE}, True),
        (UPLOAD, {"file": [{"base64": LARGE}]}, True),
        (JSON, {"file": LARGE}, True),
        (JSON, {"file": "AA=="}, False),
        (UPLOAD, {"ids": [1] * 3000}, True),
        (UPLOAD, {"ids": [""] * 3000}, True),
        (UPLOAD, {"ids": [1] * 1000}, False),
        (FORM, {f"key{number}": 1 for number in range(3000)}, True),
        (FORM, {"k" * 300_000: 1}, True),
        (QUERY, {"ids": [1] * 3000}, True),
        (QUERY, {"ids": [1] * 1000}, False),
    ],
    ids=[
        "small", "large", "large in a list", "large JSON", "small JSON", "many numbers", "many empty texts",
        "some numbers", "many fields", "a long name", "a long query", "a short query",
    ],
)  # fmt: skip
def test_a_large_request_is_composed_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, operation: HttpOperation, arguments: Any, is_beside: bool
) -> None:
    composed, was_beside = composed_in(monkeypatch, operation, arguments)
    assert was_beside is is_beside
    assert composed == Composer(operation).compose(arguments)


def test_a_file_by_its_path_is_read_and_composed_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x00in the folder")
    composed, was_beside = composed_in(monkeypatch, UPLOAD, {"file": {"path": "a.bin"}}, files=tmp_path)
    assert was_beside
    assert b"\x00in the folder" in (composed.body or b"")


def test_without_a_folder_no_path_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused) as caught:
        composed_in(monkeypatch, UPLOAD, {"file": {"path": "a.bin"}})
    assert caught.value.findings[0].pointer == "/file/path"


def test_large_bodies_wait_for_room_and_small_ones_do_not() -> None:
    async def main() -> None:
        requests = ComposedRequests({"api": Gateway("api", "https://a.example")}, MemoryRoom(len(LARGE)))
        async with requests.of("tool", UPLOAD, {"file": LARGE}):
            async with requests.of("tool", UPLOAD, {"file": "AA=="}) as small:
                assert small.body
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), requests.of("tool", UPLOAD, {"file": LARGE}):
                    raise AssertionError("there was no room")
        async with requests.of("tool", UPLOAD, {"file": LARGE}) as large:
            assert large.body

    asyncio.run(main())


def test_a_cancelled_call_keeps_its_room_while_its_body_is_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    started, may_end = threading.Event(), threading.Event()
    compose = Composer.compose

    def slow(composer: Composer, *given: Any) -> Composed:
        started.set()
        may_end.wait(5)
        return compose(composer, *given)

    monkeypatch.setattr(Composer, "compose", slow)

    async def main() -> None:
        room = MemoryRoom(len(LARGE))
        requests = ComposedRequests({"api": Gateway("api", "https://a.example")}, room)

        async def call() -> None:
            async with requests.of("tool", UPLOAD, {"file": LARGE}):
                raise AssertionError("the call was cancelled")

        cancelled = asyncio.create_task(call())
        await asyncio.to_thread(started.wait, 5)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), room.of(1):
                raise AssertionError("there was no room")
        may_end.set()
        async with asyncio.timeout(5), room.of(len(LARGE)):
            pass

    asyncio.run(main())


def test_a_file_holds_its_own_size_once_it_was_read(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(100))
    api = Gateway("api", "https://a.example", files=tmp_path, max_file_bytes=10_000)

    async def main() -> None:
        room = MemoryRoom(20_000)
        requests = ComposedRequests({"api": api}, room)
        twice: JSONObject = {"file": [{"path": "a.bin"}, {"path": "a.bin"}]}
        async with asyncio.timeout(5), requests.of("tool", UPLOAD, twice):
            async with room.of(19_000):
                pass
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), room.of(19_801):
                    raise AssertionError("the file is sent twice")

    asyncio.run(main())
