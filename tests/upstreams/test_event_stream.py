"""The events of a response: messages in order, and where to resume."""

from __future__ import annotations

from typing import Any

from portbook.upstreams.http_transport import UpstreamEvents
from portbook.wire.lines_and_size_limit import OVERSIZE


class Receiver:
    def __init__(self) -> None:
        self.frames: list[Any] = []
        self.is_open = True

    def received(self, frame: Any, of: int | None) -> None:
        self.frames.append((frame, of))

    def awaits(self, of: int) -> bool:
        return self.is_open

    def failed(self, of: int, error: Exception) -> None:
        raise AssertionError(error)

    def lost(self, problem: str) -> None:
        raise AssertionError(problem)


def test_messages_are_delivered_and_priming_events_are_not() -> None:
    receiver = Receiver()
    stream = UpstreamEvents(receiver, 7)
    assert stream.wants(200, {b"content-type": b"text/event-stream; charset=utf-8"})
    stream.take(b"id: 1\nretry: 250\ndata: \n\nid: 2\ndata: {}\n\nevent: ping\ndata: x\n\n")
    assert receiver.frames == [(b"{}", 7)]
    assert (stream.last_id, stream.retry_ms, stream.count) == ("2", 250, 1)
    assert not stream.is_answered
    receiver.is_open = False
    assert stream.is_answered


def test_other_responses_are_no_streams() -> None:
    stream = UpstreamEvents(Receiver(), 7)
    assert not stream.wants(200, {b"content-type": b"application/json"})
    assert not stream.wants(404, {b"content-type": b"text/event-stream"})
    assert not stream.has_begun


def test_an_event_that_is_too_long_is_told_as_one() -> None:
    receiver = Receiver()
    stream = UpstreamEvents(receiver, 7)
    for _ in range(9):
        stream.take(b"data: " + b"x" * 1_000_000)
    stream.take(b"\n\n")
    stream.take(b"data: {}\n\n")
    assert receiver.frames == [(OVERSIZE, 7), (b"{}", 7)]


def test_an_id_that_no_header_can_hold_is_not_resumed_from() -> None:
    for given, usable in ((b"7", "7"), ("\u2603".encode(), None), (b"x" * 2000, None)):
        stream = UpstreamEvents(Receiver(), 7)
        stream.take(b"id: " + given + b"\ndata: \n\n")
        assert stream.last_id == usable
