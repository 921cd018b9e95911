"""Rounds of a call: the answers and the state that a client sends with its next request. Pure: no I/O.

A call that needs input ends with questions and a state; the client calls again with answers and that state.
An answer counts only for the exact question that was asked, not for a changed one with the same name.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Final, Protocol, cast

import orjson

from portbook.canonical import canonical_bytes, fingerprint
from portbook.clock import Clock, later
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, InputNeeded, JSONObject, Resumption
from portbook.text.sha256 import hmac_sha256, is_same_digest, sha256
from portbook.text.slotted import slotted

__all__ = ["Carried", "SignedStates", "StateCodec", "carried_by"]

# requestState, signed: what a client sends back with the next round. The clock is an argument.
#
# A call that needs input ends with questions and this text; the client calls again with the answers and the
# text. The text holds what was asked and answered so far. It is signed with the store's key, and expires
# after an hour. It is valid for this caller and this call alone, and cannot be forged or changed.

# The version of the format, part of the signature: a different format never passes as this one.
_FORM: Final = "portbook.state.2"
_GOOD_FOR_S: Final = 3600
_MAX_TEXT: Final = 262_144


class SignedStates:
    """Signs states, and verifies them."""

    def __init__(self, key: Callable[[], bytes], clock: Clock) -> None:
        """Sign with the result of `key`, which is called when it is needed."""
        self._key = key
        self._clock = clock

    def seal(self, bound: JSON, content: JSONObject) -> str:
        """Return the signed text for the call that `bound` describes."""
        until = later(self._clock.now(), _GOOD_FOR_S)
        body = orjson.dumps({"until": until, "content": content})
        return f"{_encoded(body)}.{_encoded(self._signature(body, bound))}"

    def open(self, bound: JSON, text: str) -> JSONObject | None:
        """Return the content of a text; None if it is forged, for a different call, or expired."""
        body_text, dot, signature_text = text.partition(".")
        if not dot or len(text) > _MAX_TEXT:
            return None
        try:
            body, signature = _decoded(body_text), _decoded(signature_text)
        except (binascii.Error, ValueError):
            return None
        if not is_same_digest(signature, self._signature(body, bound)):
            return None
        state = cast("JSONObject", orjson.loads(body))
        is_current = self._clock.now() < cast("str", state["until"])
        return cast("JSONObject", state["content"]) if is_current else None

    def _signature(self, body: bytes, bound: JSON) -> bytes:
        what = canonical_bytes([_FORM, bound, sha256(body).hexdigest()])
        return hmac_sha256(self._key(), what).digest()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    if not text.isascii():
        raise ValueError("not of this form")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


class StateCodec(Protocol):
    """Signs states, and verifies them."""

    def seal(self, bound: JSON, content: JSONObject) -> str:
        """Return the signed text for the call that `bound` describes."""
        ...

    def open(self, bound: JSON, text: str) -> JSONObject | None:
        """Return the content of a text; None if it is not valid for this call."""
        ...


@slotted(frozen=False, eq=False)
class Carried:
    """The answers of a client, and the questions that they answer."""

    given: JSONObject = field(default_factory=dict[str, JSON])
    """The answers in this request."""
    asked: Mapping[str, JSON] | None = None
    """The fingerprint of the question asked under each name; None without a state."""
    kept: dict[str, JSON] = field(default_factory=dict[str, JSON])
    """The used answers of earlier rounds, each with the fingerprint of its question."""
    approval: str | None = None
    """The approval ticket of the call, if an earlier round asked for one."""
    memo: JSON = None
    """What an earlier round kept, where this one continues it."""

    @property
    def resumption(self) -> Resumption | None:
        """Return what this round continues, or the answers that came unasked; None where there is neither."""
        if self.memo is None and (not self.given or self.asked is not None):
            return None
        names = self.given if self.asked is None else self.asked
        answers = {name: self.given[name] for name in names if isinstance(self.given.get(name), dict)}
        return Resumption(self.memo, cast("dict[str, JSONObject]", answers))

    def answer_to(self, name: str, request: JSONObject) -> JSONObject | None:
        """Return the answer to a question; None if it has none yet.

        Answers without a state are accepted by name: the client never got a state, or has lost it.
        """
        question = fingerprint(request)
        earlier = self.kept.get(name)
        if isinstance(earlier, list) and earlier[0] == question:
            return cast("JSONObject", earlier[1])
        answer = self.given.get(name)
        is_to_it = self.asked is None or self.asked.get(name) == question
        return answer if isinstance(answer, dict) and is_to_it else None

    def use(self, name: str, request: JSONObject, answer: JSONObject) -> None:
        """Keep a used answer in the state, for the next round."""
        self.kept[name] = [fingerprint(request), answer]

    def content(self, needed: InputNeeded) -> JSONObject:
        """Return the content of the next round's state."""
        asked: JSONObject = {name: fingerprint(request) for name, request in needed.requests.items()}
        content: JSONObject = {
            "asked": asked,
            "kept": self.kept,
            "approval": needed.approval or self.approval,
        }
        return content if needed.memo is None else {**content, "memo": needed.memo}


def carried_by(params: JSONObject, bound: Callable[[], JSON], states: StateCodec) -> Carried:
    """Return the answers and the state of a request; `bound` describes its call, needed with a state only.

    Raises `Refused` for a state that was not issued for this call.
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
        content.get("memo"),
    )
