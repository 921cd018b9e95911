"""Server-sent events: what is written is read, however it is cut, and bounded."""

from __future__ import annotations

import pytest

from portbook.wire.sse import EventReader, ServerSentEvent, event, priming

STREAM = (
    priming("1", 500) + event(b'{"a":1}', "2") + b": a comment\n\nevent: other\r\ndata: x\r\ndata: y\r\n\r\n"
)
EVENTS = [
    ServerSentEvent("message", b""),
    ServerSentEvent("message", b'{"a":1}'),
    ServerSentEvent("other", b"x\ny"),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, len(STREAM)])
def test_events_are_read_however_they_arrive(size: int) -> None:
    reader = EventReader(1000)
    found = [each for at in range(0, len(STREAM), size) for each in reader.feed(STREAM[at : at + size])]
    assert found == EVENTS
    assert (reader.last_id, reader.retry_ms) == ("2", 500)


def test_an_event_over_the_limit_is_dropped_and_the_next_one_read() -> None:
    reader = EventReader(100)
    assert reader.feed(b"data: " + b"x" * 200 + b"\n\n") == []
    assert reader.was_cut
    assert reader.feed(b"data: y\n\n") == [ServerSentEvent("message", b"y")]


def test_many_lines_of_one_event_count_together() -> None:
    reader = EventReader(100)
    assert reader.feed(b"data: 0123456789\n" * 20 + b"\n") == []
    assert reader.was_cut


def test_a_delay_beyond_reason_is_not_waited_for() -> None:
    reader = EventReader(100)
    reader.feed(b"retry: 999999999\nretry: soon\n")
    assert reader.retry_ms == 60_000
