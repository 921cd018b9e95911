"""requestState, signed: what a client sends back with the next round. Pure: no I/O, the clock is an argument.

A call that needs input ends with questions and this text; the client calls again with the answers and the
text. The text holds what was asked and answered so far. It is signed with the store's key, and expires after
an hour. It is valid for this caller and this call alone, and cannot be forged or changed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Callable
from typing import Final, cast

import orjson

from portbook.canonical import canonical_bytes
from portbook.clock import Clock, later
from portbook.model import JSON, JSONObject

__all__ = ["SignedStates"]

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
        if not hmac.compare_digest(signature, self._signature(body, bound)):
            return None
        state = cast("JSONObject", orjson.loads(body))
        is_current = self._clock.now() < cast("str", state["until"])
        return cast("JSONObject", state["content"]) if is_current else None

    def _signature(self, body: bytes, bound: JSON) -> bytes:
        what = canonical_bytes([_FORM, bound, hashlib.sha256(body).hexdigest()])
        return hmac.new(self._key(), what, hashlib.sha256).digest()


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    if not text.isascii():
        raise ValueError("not of this form")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
