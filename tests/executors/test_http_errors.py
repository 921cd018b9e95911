"""A status that is no success: the reason it has, and what of the answer is told."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.errors import Reason
from support.http_scene import failure
from support.scripted_api import answer

ERROR, DENIED = Reason.UPSTREAM_ERROR, Reason.UPSTREAM_DENIED
NOT_FOUND, REJECTED = Reason.UPSTREAM_NOT_FOUND, Reason.UPSTREAM_REJECTED

STATUSES = [
    # status, its reason, whether it may pass
    (300, ERROR, False), (304, ERROR, False), (400, REJECTED, False), (401, DENIED, False),
    (402, REJECTED, False), (403, DENIED, False), (404, NOT_FOUND, False), (405, REJECTED, False),
    (407, DENIED, False), (408, ERROR, False), (409, REJECTED, False), (410, NOT_FOUND, False),
    (422, REJECTED, False), (425, ERROR, False), (429, ERROR, True), (499, REJECTED, False),
    (500, ERROR, True), (501, ERROR, True), (502, ERROR, True), (503, ERROR, True), (504, ERROR, True),
    (599, ERROR, True),
]  # fmt: skip


@pytest.mark.covers("002.execution.upstream-statuses")
@pytest.mark.parametrize(("status", "reason", "may_pass"), STATUSES)
def test_a_status_has_its_reason_and_no_message_holds_the_answer(
    status: int, reason: Reason, may_pass: bool
) -> None:
    said = answer(b'{"password":"hunter2"}', status, X_Secret="hunter2")
    ending, upstream = failure(said, method="POST")
    assert (ending.reason, ending.is_retryable) == (reason, may_pass)
    conflict = ", a conflict with the present state" if status == 409 else ""
    told = {"happened": f"the answer has the status {status}{conflict}", "upstream_status": status}
    body = {"upstream_body": {"password": "hunter2"}} if reason is REJECTED else {}
    assert ending.details == {**told, **body}
    assert "hunter2" not in f"{ending.note}{ending.findings}{ending.sentence}"
    assert len(upstream.asked) == 1


BODIES: list[tuple[str, bytes, Any]] = [
    ("a problem", answer(b'{"title":"no"}', 409, "application/problem+json"), {"title": "no"}),
    ("a list", answer(b"[1]", 422), [1]),
    ("null", answer(b"null", 422), None),
    ("as large as is given", answer(b'"%b"' % (b"x" * 16_382), 422), "x" * 16_382),
]


@pytest.mark.parametrize(("what", "said", "body"), BODIES, ids=[row[0] for row in BODIES])
def test_the_json_of_a_rejection_is_data(what: str, said: bytes, body: Any) -> None:
    assert failure(said, method="POST")[0].details["upstream_body"] == body


WITHHELD = [
    ("text", answer(b"no", 422, "text/plain"), "not plain JSON"),
    ("HTML", answer(b"<p>no</p>", 400, "text/html"), "not plain JSON"),
    ("not JSON", answer(b"{no", 400), "not strict JSON"),
    ("two equal keys", answer(b'{"a":1,"a":2}', 400), "not strict JSON"),
    ("nothing", answer(b"", 422), None),
    ("compressed", answer(b"\x1f\x8b", 422, Content_Encoding="gzip"), "not plain JSON"),
    ("larger", answer(b'"%b"' % (b"x" * 16_383), 422), "larger than 16384 bytes"),
]


@pytest.mark.parametrize(("what", "said", "why"), WITHHELD, ids=[row[0] for row in WITHHELD])
def test_what_is_no_small_json_is_left_out_and_said_so(what: str, said: bytes, why: str | None) -> None:
    ending, _ = failure(said, method="POST")
    assert ending.reason is REJECTED
    assert "upstream_body" not in ending.details
    assert ending.details.get("upstream_body_left_out") == why


@pytest.mark.parametrize(
    ("status", "reason", "why"),
    [
        (404, NOT_FOUND, None),
        (403, DENIED, None),
        (422, REJECTED, "larger than the limit for answers"),
        (503, ERROR, None),
        (200, ERROR, None),
    ],
)
def test_an_answer_too_large_to_be_read_has_the_reason_of_its_status(
    status: int, reason: Reason, why: str | None
) -> None:
    ending, _ = failure(answer(b"[%b]" % (b" " * 50), status), method="POST", max_response_bytes=10)
    assert (ending.reason, ending.details["upstream_status"]) == (reason, status)
    assert ending.details.get("upstream_body_left_out") == why
    assert ending.is_retryable is (status == 503)


def test_a_conflict_is_not_blamed_on_the_arguments_alone() -> None:
    ending, _ = failure(answer(b"{}", 409), method="POST")
    assert "the answer has the status 409, a conflict with the present state. " in ending.sentence
    assert "after a conflict, look at the present state first" in ending.sentence


def test_an_operator_can_keep_the_answers() -> None:
    ending, _ = failure(answer(b'{"a":1}', 422), method="POST", gateway={"gives_error_bodies": False})
    assert ending.details == {"happened": "the answer has the status 422", "upstream_status": 422}
