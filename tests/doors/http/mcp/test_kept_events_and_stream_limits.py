"""The messages of a stream: which are kept, which wait for a reader, and when tools have to wait."""

from __future__ import annotations

import sys

import pytest

from portbook.canonical import json_bytes
from portbook.doors.http.mcp.kept_events_and_stream_limits import (
    FEW_UNREAD,
    MAX_REPORT_BYTES,
    MAX_UNREAD_BYTES,
    StreamMessages,
)

KIB = 1024


def messages_of(count: int, size: int = KIB, *, is_pressed: bool = False) -> StreamMessages:
    messages = StreamMessages(lambda: is_pressed, is_deduplicated=False)
    for number in range(count):
        messages.add(b"%d" % number + b"x" * size, is_vital=False)
        while messages.drop_one() is not None:
            pass
    return messages


def test_there_is_room_until_a_reader_has_much_to_read_and_again_once_it_has_read() -> None:
    full = MAX_UNREAD_BYTES // KIB
    assert messages_of(full - 10).has_room
    messages = messages_of(full + 10)
    assert not messages.has_room
    messages.deliver(10)
    assert not messages.has_room
    messages.deliver(full)
    assert messages.has_room


def test_what_is_delivered_again_or_claimed_to_be_read_is_counted_once() -> None:
    messages = messages_of(3 * MAX_UNREAD_BYTES // KIB)
    for position in (150, 20, 150):  # a client that resumes names the last event it has
        messages.deliver(position)
    assert messages.delivered == 150
    messages.deliver(messages.end_position)
    messages.add(b"x" * (MAX_UNREAD_BYTES + 1), is_vital=False)
    assert not messages.has_room


def test_what_is_dropped_unread_no_longer_waits() -> None:
    messages = messages_of(2 * MAX_REPORT_BYTES // KIB)
    assert messages.bytes <= MAX_REPORT_BYTES
    first = messages.after(0)
    assert first is not None
    assert first > 1
    messages.deliver(messages.end_position)
    assert messages.has_room


@pytest.mark.parametrize(("is_pressed", "kept"), [(False, 100), (True, FEW_UNREAD)])
def test_fewer_wait_while_all_streams_together_are_over_their_limit(is_pressed: bool, kept: int) -> None:
    messages = messages_of(100, 10, is_pressed=is_pressed)
    positions = [messages.after(0)]
    while (position := messages.after(positions[-1] or 0)) is not None:
        positions.append(position)
    assert len(positions) == kept


def test_what_is_kept_is_no_longer_than_it_says() -> None:
    encoded = json_bytes({"text": "x" * 5000})
    messages = StreamMessages(lambda: False, is_deduplicated=True)
    assert messages.add(encoded, is_vital=True)
    assert not messages.add(encoded, is_vital=True)
    kept = messages.read(1)
    assert (kept, kept is encoded) == (encoded, False)  # the encoder's own bytes hold its whole buffer
    assert sys.getsizeof(kept) == len(kept) + sys.getsizeof(b"")
    assert messages.add(encoded, is_vital=True)  # the first one has been read
