"""What an API sent, as a result; or why it is none, and nothing else of it."""

from __future__ import annotations

import pytest

from portbook.errors import Reason
from portbook.model import JSON
from support.http_scene import failure, result
from support.scripted_api import answer

BODIES: list[tuple[str, bytes, str, JSON]] = [
    ("an object", answer(b'{"id":"A-1"}'), "application/json", {"id": "A-1"}),
    ("a charset", answer(b"[1]", content_type="application/json; charset=utf-8"), "application/json", [1]),
    ("capitals", answer(b"[1]", content_type="Application/JSON"), "application/json", [1]),
    ("another JSON", answer(b"[1]", content_type="application/hal+json"), "application/json", [1]),
    ("plain JSON for another", answer(b"[1]"), "application/hal+json", [1]),
    ("nothing", answer(b"", 204, ""), "application/json", None),
    ("an empty body", answer(b"", 201, ""), "application/json", None),
    ("text", answer("é\n".encode(), content_type="text/plain;charset=utf-8"), "text/plain", "é\n"),
    ("created", answer(b'{"id":1}', 201), "application/json", {"id": 1}),
    (
        "big integers",
        answer(b"[123456789012345678901234567890]"),
        "application/json",
        [123456789012345678901234567890],
    ),
]


@pytest.mark.parametrize(("what", "said", "content_type", "expected"), BODIES, ids=[row[0] for row in BODIES])
def test_a_result_is_what_the_api_sent(what: str, said: bytes, content_type: str, expected: JSON) -> None:
    assert result(said, response=content_type)[0] == expected


def test_a_response_to_head_is_null() -> None:
    said = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n"
    assert result(said, method="HEAD")[0] is None


USELESS = [
    ("another type", answer(b"<html>hunter2</html>", content_type="text/html")),
    ("no type", answer(b'{"a":1}', content_type="")),
    ("two types", answer(b'{"a":1}', Content_Type="text/html")),
    ("not JSON", answer(b"{hunter2")),
    ("two equal keys", answer(b'{"a":1,"a":2}')),
    ("not a number", answer(b"[NaN]")),
    ("not UTF-8", answer(b'"\xff"')),
    ("compressed", answer(b"\x1f\x8b hunter2", Content_Encoding="gzip")),
]


@pytest.mark.parametrize(("what", "said"), USELESS, ids=[row[0] for row in USELESS])
def test_an_answer_that_is_not_what_was_promised_is_no_result(what: str, said: bytes) -> None:
    ending, upstream = failure(said)
    assert (ending.reason, ending.is_retryable) == (Reason.UPSTREAM_ERROR, False), what
    assert ending.details == {"happened": ending.note, "upstream_status": 200}
    assert "hunter2" not in f"{ending.note}{ending.findings}"
    assert len(upstream.asked) == 1


def test_text_that_is_not_utf_8_is_no_result() -> None:
    ending, _ = failure(answer(b"\xff", content_type="text/plain"), response="text/plain")
    assert ending.reason is Reason.UPSTREAM_ERROR


@pytest.mark.parametrize("after", ["3", "3600", "Wed, 21 Oct 2099 07:28:00 GMT", "soon", "99999999999999"])
def test_a_server_that_asks_for_a_long_wait_is_told_to_the_caller(after: str) -> None:
    ending, upstream = failure(answer(b"", 429, Retry_After=after))
    assert (ending.details["upstream_status"], ending.is_retryable) == (429, True)
    assert len(upstream.asked) == 1
