from __future__ import annotations

import pytest

from portbook.doors.http.request import accepted

# What is sent, and whether that allows JSON and events.
HEADERS: dict[bytes | None, tuple[bool, bool]] = {
    None: (True, True),
    b"": (False, False),
    b"*/*": (True, True),
    b"application/json": (True, False),
    b"Application/JSON; charset=utf-8": (True, False),
    b"text/*": (False, True),
    b"application/json, text/event-stream": (True, True),
    b"application/json;q=0, text/event-stream": (False, True),
    b"application/json;q=0.0, text/event-stream;Q=0.000": (False, False),
    b"application/json;q=0.1,text/event-stream": (True, True),
    b"*/*, application/json;q=0": (False, True),
    b"text/*;q=0, */*": (True, False),
    b"text/*;q=0, text/event-stream": (False, True),
    b"application/json;q=much": (True, False),
    b"image/png, application/jsonish": (False, False),
    b"text/event-stream" + b", image/png" * 100: (False, True),
}


@pytest.mark.parametrize("header", HEADERS)
def test_the_most_specific_range_that_a_form_is_in_decides(header: bytes | None) -> None:
    assert tuple(accepted(header)) == HEADERS[header]
