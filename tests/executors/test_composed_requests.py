"""Requests of calls: composed at once, or in a thread and within the room for large ones."""

from __future__ import annotations

import asyncio
import base64
import threading
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.gateway import Gateway
from portbook.apis.request_composer import Composed, Composer
from portbook.errors import Refused
from portbook.executors.composed_requests import ComposedRequests
from portbook.executors.memory_room import MemoryRoom
from portbook.tools.operation import BodyPart, HttpOperation

UPLOAD = HttpOperation(
    "api",
    "https://a.example",
    "POST",
    "/",
    request="multipart/form-data",
    parts=(BodyPart("file", is_binary=True),),
)
JSON = HttpOperation("api", "https://a.example", "POST", "/")
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
    ("operation", "arguments", "is_beside"),
    [
        (UPLOAD, {"file": "AA=="}, False),
        (UPLOAD, {"file": LARGE}, True),
        (UPLOAD, {"file": [{"base64": LARGE}]}, True),
        (JSON, {"file": LARGE}, False),
    ],
    ids=["small", "large", "large in a list", "JSON"],
)
def test_a_large_form_is_composed_beside_the_event_loop(
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
