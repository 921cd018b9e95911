"""What a caller brings along from one round of a call to the next. Pure: no I/O.

A call that needs input ends with questions and a state, and is made again with answers and that state. An
answer counts for the very question that it was given to, and for no other that goes by the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

from portbook.canonical import fingerprint
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, InputNeeded, JSONObject

__all__ = ["Carried", "StateCodec", "carried_by"]


class StateCodec(Protocol):
    """Signs what callers carry, and reads it back."""

    def seal(self, bound: JSON, content: JSONObject) -> str:
        """Return the text that a caller carries for the call that `bound` describes."""
        ...

    def open(self, bound: JSON, text: str) -> JSONObject | None:
        """Return the content of a text; None where it is not good for this call."""
        ...


@dataclass(slots=True)
class Carried:
    """The answers of a caller, and what is known of the questions that they are to."""

    given: JSONObject = field(default_factory=dict[str, JSON])
    """The answers in this request."""
    asked: Mapping[str, JSON] | None = None
    """Which question was asked under each name, by fingerprint; None where no state came along."""
    kept: dict[str, JSON] = field(default_factory=dict[str, JSON])
    """The answers of earlier rounds that were used, each with the fingerprint of its question."""
    approval: str | None = None
    """The ticket of the call, where a person was asked about it in an earlier round."""

    def answer_to(self, name: str, request: JSONObject) -> JSONObject | None:
        """Return the answer to a question; None where it has none yet.

        A client that brings answers without a state is taken at its word: it was never told what is asked
        under which name, or has lost it.
        """
        question = fingerprint(request)
        earlier = self.kept.get(name)
        if isinstance(earlier, list) and earlier[0] == question:
            return cast("JSONObject", earlier[1])
        answer = self.given.get(name)
        is_to_it = self.asked is None or self.asked.get(name) == question
        return answer if isinstance(answer, dict) and is_to_it else None

    def use(self, name: str, request: JSONObject, answer: JSONObject) -> None:
        """Keep an answer that was used: the next round has to bring it along."""
        self.kept[name] = [fingerprint(request), answer]

    def content(self, needed: InputNeeded) -> JSONObject:
        """Return what the state of the next round holds."""
        asked: JSONObject = {name: fingerprint(request) for name, request in needed.requests.items()}
        return {"asked": asked, "kept": self.kept, "approval": needed.approval or self.approval}


def carried_by(params: JSONObject, bound: Callable[[], JSON], states: StateCodec) -> Carried:
    """Return what a request brings along; `bound` describes its call, and is asked where there is a state.

    Raises `Refused` for a state that was not given out for this call.
    """
    answers, text = params.get("inputResponses"), params.get("requestState")
    given = answers if isinstance(answers, dict) else {}
    if not isinstance(text, str):
        return Carried(given)
    content = states.open(bound(), text)
    if content is None:
        finding = Finding("/params/requestState", "not issued for this call; leave it out", "state", "")
        raise Refused(Reason.BAD_PARAMS, (finding,))
    return Carried(
        given,
        cast("JSONObject", content["asked"]),
        cast("JSONObject", content["kept"]),
        cast("str | None", content["approval"]),
    )
