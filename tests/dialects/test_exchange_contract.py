"""An exchange without a form of its own, and the answer to a message that needs no connection."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.dialects.exchange_contract import Exchange, MessageExchange, answer_of
from portbook.errors import Ending, Failed, Reason, Refused
from portbook.model import Answer, Completed, Done, Identity, InputNeeded
from portbook.wire.jsonrpc import NO_ID, Id
from support.fake_world import CATALOG, a_call

IDENTITY = Identity("request-1", "trace-1", "span-1")


def test_a_contract_without_a_form_of_its_own_adds_nothing() -> None:
    exchange, tool = Exchange(a_call()), CATALOG.find("echo")
    assert tool is not None
    assert (exchange.handler, exchange.act, exchange.report) == (None, None, None)
    assert exchange.client() is None
    exchange.began(tool)
    assert exchange.seal(tool, 1, b"1", None, False) is None
    assert exchange.pause(InputNeeded({})) is None


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (Done(b"1"), None),
        (Refused(Reason.RATE_LIMITED, details={"retry_after_s": 7}), 7),
        (Failed(Reason.TIMEOUT), None),
    ],
)
def test_an_answer_says_when_to_retry_where_that_is_known(outcome: Any, seconds: int | None) -> None:
    completed = Completed(outcome, IDENTITY, 1.0, is_redacted=True)
    assert answer_of(completed, b"{}", 200) == Answer(b"{}", 200, False, IDENTITY, seconds, True)


class _Dialect:
    def recognises(self, message: object) -> bool:
        return True

    def read(self, message: object, identifier: Id, arrival: object) -> MessageExchange:
        return MessageExchange(a_call(), self, identifier)

    def write(self, outcome: Done | Ending, identifier: Id, method: str | None) -> tuple[bytes, int]:
        return b"%b %b" % (identifier, str(method).encode()), 200


def test_a_message_is_answered_by_its_dialect_and_one_without_an_id_is_a_notification() -> None:
    completed = Completed(Done(b"1"), IDENTITY, 1.0)
    answer = _Dialect().read({}, b"5", None).write(completed)
    assert (answer.body, answer.is_notification) == (b"5 mcp.tool.invoke", False)
    assert _Dialect().read({}, NO_ID, None).write(completed).is_notification
