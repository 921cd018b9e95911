"""Digests under the audit key: of which parts, and what they do not tell."""

from __future__ import annotations

import hmac
import json

import pytest

from portbook.audit.keyed_digests import AuditKey, BadAuditKey
from portbook.errors import Reason, Refused
from portbook.model import NO_CONTEXT, Arrival, Call, CallerContext, Done

SECRET = b"s" * 32
KEY = AuditKey(SECRET)


def a_call(context: CallerContext = NO_CONTEXT, tool: str | None = "t") -> Call:
    return Call(Arrival("cli", "call"), "m", tool, {"b": 1, "a": "x"}, 15, context, None, None)


def expected(part: bytes, value: bytes) -> str:
    return hmac.new(SECRET, part + b"\nrequest\n" + value, "sha256").hexdigest()


def digests(member: bytes) -> dict[str, str | None]:
    found = json.loads(b"{" + member[1:] + b"}")
    assert list(found) == ["hmac"]
    return found["hmac"]


def test_each_part_is_an_hmac_bound_to_its_name_and_call() -> None:
    context = CallerContext(agent_id="ada")
    found = digests(KEY.members(a_call(context), b"request", Done(b'{"r":1}')))
    claims = (
        b'{"agent_id":"ada","attempt":1,"correlation":null,"prompt_id":null,"session":null,"step_id":1,'
        b'"task_id":null}'
    )
    assert found == {
        "key": KEY.key_id,
        "arguments": expected(b"arguments", b'{"b":1,"a":"x"}'),
        "result": expected(b"result", b'{"r":1}'),
        "claims": expected(b"claims", claims),
    }


def test_what_a_call_does_not_have_is_null() -> None:
    nothing = {"key": KEY.key_id, "arguments": None, "result": None, "claims": None}
    assert digests(KEY.members(a_call(tool=None), b"request", Refused(Reason.UNKNOWN_METHOD))) == nothing
    assert digests(KEY.members(a_call(tool=None), b"request", Done(b"", b"{}", is_asking=True))) == nothing


def test_a_key_is_read_as_it_was_written_and_never_shown() -> None:
    assert AuditKey.from_text(KEY.to_text()).digest("result", b"r", b"1") == KEY.digest("result", b"r", b"1")
    assert SECRET.hex() not in repr(KEY) + KEY.key_id


@pytest.mark.parametrize("text", ["", "pbk_audit_00", KEY.to_text().upper(), KEY.to_text() * 2])
def test_what_is_no_key_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(BadAuditKey) as refused:
        AuditKey.from_text(text)
    assert text == "" or text.strip() not in str(refused.value)
