"""What a tool tells and asks on the way is as secret as its result."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook import Toolset
from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Failed
from portbook.model import Draft
from portbook.redaction import Redactor
from portbook.stages.checked_and_redacted_results import RedactedClient, bytes_of
from portbook.stages.ports import LARGE_BYTES, AtOnce
from portbook.stages.rules_in_force import InForce, Rules
from portbook.stages.state import CallState
from portbook.testing import TestClient
from support.fake_world import CALLERS, CANARY, a_call
from support.listening_client import Listener


class Conversation:
    """A client behind a redactor that can be exchanged while the call is under way."""

    def __init__(self, redactor: Redactor | None) -> None:
        self.in_force = InForce(Rules(callers=CALLERS, redactor=redactor))
        self.listener = Listener()
        state = CallState()
        state.exchange, state.call, state.in_force = Exchange(a_call()), a_call(), self.in_force
        state.is_redacted = False
        self.client = RedactedClient(self.listener, state, AtOnce())

    def tell(self) -> None:
        data = {"seen": [f"the key is {CANARY}"]}
        self.client.log("info", Draft(len(str(data)), lambda: data), "tool")

    def ask(self) -> None:
        asked = {"who": {"method": "elicitation/create", "params": {"message": f"Is it {CANARY}?"}}}
        answers = asyncio.run(self.client.ask(asked, lambda name, answer: True))
        assert answers == {"who": {"action": "accept", "content": {}}}


@pytest.mark.parametrize(
    ("redactor", "word"), [(Redactor(secrets=[CANARY]), "[redacted]"), (None, CANARY)], ids=["on", "off"]
)
def test_a_client_is_told_and_asked_without_secrets_unless_redaction_is_off(
    redactor: Redactor | None, word: str
) -> None:
    conversation = Conversation(redactor)
    conversation.tell()
    conversation.ask()
    assert conversation.listener.heard == [
        ("info", {"seen": [f"the key is {word}"]}, "tool"),
        ("who", f"Is it {word}?"),
    ]


def test_a_secret_that_is_learnt_on_the_way_is_taken_out_from_then_on() -> None:
    conversation = Conversation(Redactor())
    conversation.tell()
    conversation.in_force.rules = Rules(callers=CALLERS, redactor=Redactor(secrets=[CANARY]))
    conversation.tell()
    said = [str(heard) for heard in conversation.listener.heard]
    assert [CANARY in each for each in said] == [True, False]


# A tool's result as JSON: small or large, a number that JSON does not have is found.


NAN, INFINITY = float("nan"), float("inf")

# As a part of a small result, and of one that is searched in another way.
PADDINGS = pytest.mark.parametrize("padding", ["", "x" * (LARGE_BYTES + 1)], ids=["small", "large"])


@PADDINGS
@pytest.mark.parametrize("value", [NAN, [None, INFINITY], {"a": (-INFINITY,)}], ids=str)
def test_a_number_that_is_not_finite_is_no_result(value: Any, padding: str) -> None:
    with pytest.raises(Failed) as raised:
        bytes_of([padding, value])
    assert raised.value.findings[0].message == "the value has a number that is not finite"


@PADDINGS
@pytest.mark.parametrize("value", [None, "null", [1.5, None], (None,), 2**70], ids=str)
def test_what_json_has_is_written(value: Any, padding: str) -> None:
    assert bytes_of([padding, value]).startswith(b'["' + padding.encode())


@PADDINGS
def test_a_caller_never_gets_null_for_a_number(padding: str) -> None:
    toolset = Toolset("numbers")

    @toolset.tool(effect="read")
    def ratio() -> Any:
        return {"note": padding, "ratio": NAN}

    with TestClient(toolset) as client:
        assert client.call("ratio").reason == "BAD_RESULT"
