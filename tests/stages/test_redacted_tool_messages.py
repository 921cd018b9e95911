"""What a tool tells and asks on the way is as secret as its result."""

from __future__ import annotations

import asyncio

import pytest

from portbook.dialects.exchange_contract import Exchange
from portbook.model import Draft
from portbook.redaction import Redactor
from portbook.stages.ports import AtOnce
from portbook.stages.redacted_tool_messages import RedactedClient
from portbook.stages.rules_in_force import InForce, Rules
from portbook.stages.state import CallState
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
