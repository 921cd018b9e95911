"""The form of a call's records: everything that other calls have too, written once. Pure: no I/O.

A form is a text with places for the few values that differ from call to call: times, ids, sizes, the ending.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import orjson

from portbook.canonical import json_bytes
from portbook.escaping import escaped, escaped_json_bytes
from portbook.model import Arrival, Call, Caller, CallerContext, Kind
from portbook.tools.tool_names import identifier_of

__all__ = [
    "BEFORE_MEMBERS",
    "NO_ROUTE",
    "PIECES_OF_LINK",
    "Pieces",
    "RecordEnd",
    "RecordForm",
    "RecordForms",
    "RecordLines",
    "as_pieces",
    "record_form",
    "shown_json",
    "whole_views",
]

# The two lines of a record, which are joined only when they are written: each byte is copied once. The pieces
# of the envelope view are its line. Those of the execution view are its members, without braces, after
# places for its link in the chain.
Pieces: TypeAlias = list[bytes]
RecordLines: TypeAlias = tuple[tuple[bytes, ...], Pieces]

# The pieces of a link: its number and what follows, the hash of the record before it, and this.
PIECES_OF_LINK: Final = 3
BEFORE_MEMBERS: Final = b'",'


def as_pieces(envelope: bytes, execution: bytes) -> RecordLines:
    """Return the lines of a record whose views are whole."""
    return (envelope, b"\n"), [b"", b"", BEFORE_MEMBERS, execution[1:-1]]


def whole_views(lines: RecordLines) -> tuple[bytes, bytes]:
    """Return both views of a record, as JSON."""
    envelope, execution = lines
    return b"".join(envelope)[:-1], b"{%b}" % b"".join(execution[PIECES_OF_LINK:])


# The forms that a tool keeps: more sessions than usually call the same tool at the same time.
_MAX_FORMS: Final = 256


# The two lines of a record whose ending is known, after their times, as the pieces around what is left: ids
# and sizes. The envelope view has the ids of request, trace and span, the milliseconds and the sizes between
# its pieces; the execution view the ids of trace and request, the milliseconds and the sizes.
_Envelope: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
_Execution: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes]
RecordEnd: TypeAlias = tuple[_Envelope, _Execution]


class RecordForm:
    """The lines of a record, with places for the values that differ from call to call."""

    __slots__ = ("_envelope", "_execution", "around_time", "intent", "stamped", "succeeded")

    def __init__(self, envelope: str, execution: str, intent: str) -> None:
        self._envelope = _pieces(f"{{{envelope}}}\n")
        self._execution = _pieces(execution)
        self.intent = _template(_pieces(f"{{{intent}}}"))
        """To be filled with the time, the ids of trace and request, the size, and further members."""
        self.succeeded = self.ended(b"ok", b"200", b"null")
        """The lines of a call that had a result, in which nothing was redacted: nearly every one."""
        self.around_time = self._envelope[:2] + self._execution[:2]
        """What is before and after the time, in both lines."""
        self.stamped: tuple[bytes, bytes, bytes] = b"never", b"", b""
        """A time, and how both lines of a call that ended then begin: many end in the same millisecond."""

    def ended(
        self,
        status: bytes,
        code: bytes,
        error: bytes,
        error_class: bytes = b"",
        redacted: bytes = b"false",
        shown: bytes = b"",
    ) -> RecordEnd:
        """Return the lines of a call that ended like this; `shown` are further members."""
        c, d, e, f, g, h, i, j = self._envelope[2:]
        envelope = (c, d, e + status + f, g, h, i + error + j)
        c, d, e, f, g, h, i, j, k = self._execution[2:]
        execution = (c, d + code + e, f + error_class + g + redacted + h, i, j + shown + k)
        return envelope, execution


class RecordForms:
    """The forms of a tool's records, by what they differ in."""

    __slots__ = ("_kept", "arrival", "caller", "contract", "form", "has_more", "method")

    def __init__(self, *, has_more: bool = False) -> None:
        self.has_more = has_more
        """Whether the records have more than the form: arguments, or digests."""
        self._kept: dict[tuple[str | None, ...], RecordForm] = {}
        self.arrival: Arrival | None = None
        """How the last call came in: a client calls the same tool again and again."""
        self.caller: Caller | None = None
        self.contract = ""
        self.method: str | None = ""
        self.form: RecordForm | None = None

    def __len__(self) -> int:
        """Return how many are kept."""
        return len(self._kept)

    def find(self, call: Call, caller: Caller, make: Callable[[], RecordForm]) -> RecordForm:
        """Return the form of the records of calls like this one, made with the first of them."""
        arrival, method, contract = call.arrival, call.method, call.contract
        key = (arrival.transport, arrival.route, method, contract, caller.name, arrival.session)
        form = self._kept.get(key)
        if form is None:
            if len(self._kept) >= _MAX_FORMS:
                self._kept.clear()
            form = self._kept[key] = make()
        self.arrival, self.caller, self.method, self.contract, self.form = (
            arrival,
            caller,
            method,
            contract,
            form,
        )
        return form


# Most calls share their form with others, so each is made once and kept. What a caller says of itself is in
# it: their number is limited.
_KEPT: Final = 512

# The form of execution records and intents. A reader takes one without a version for the first.
RECORD_VERSION: Final = "2"

# The endpoint, domain and method of a tool that calls no API.
NO_ROUTE: Final = (None, None, None)


@lru_cache(maxsize=_KEPT)
def record_form(
    context: CallerContext,
    transport: str,
    route: str,
    session: str | None,
    method: str | None,
    contract: str,
    deterministic: bool,
    kind: Kind,
    tool: str | None,
    effect: str | None,
    is_unchecked: bool,
    is_confined: bool | None,
    operation: tuple[str | None, ...],
    decided: str | None,
    rule: str | None,
    place: str | None,
    caller: str | None,
    approval: str | None,
    basis: str | None,
) -> RecordForm:
    """Return the form of the records of calls that have all of this in common."""
    identifier = _json_text(None if tool is None else identifier_of(kind, tool))
    step, attempt = _step(context.step_id), str(context.attempt)
    confined = {} if is_confined is None else {"confined": _json_text(is_confined)}
    metadata = {
        "schemaVersion": _json_text(contract),
        "deterministic": _json_text(deterministic),
        "toolId": identifier,
        "promptId": _safe(context.prompt_id),
        **({"outputChecked": "false"} if is_unchecked else {}),
        **confined,
    }
    envelope: _Parts = {
        "ts": _TEXT,
        "agentId": _safe(context.agent_id),
        "taskId": _safe(context.task_id),
        "stepId": step,
        "transport": _json_text(transport),
        "route": _json_text(route),
        "method": _safe(method),
        "requestId": _TEXT,
        "traceId": _TEXT,
        "spanId": _TEXT,
        "status": _TEXT,
        "durationMs": _VALUE,
        "attempt": attempt,
        "inputBytes": _VALUE,
        "outputBytes": _VALUE,
        "metadata": f"{{{_members(metadata)}}}",
        "error": _VALUE,
    }
    about: _Parts = {
        "record_version": RECORD_VERSION,
        "timestamp": _TEXT,
        "session_id": _safe(session),
        "trace_id": _TEXT,
        "request_id": _TEXT,
        "tool_id": identifier,
        **dict(zip(("endpoint", "domain", "method"), map(_json_text, operation), strict=True)),
        "agent_step": step,
        "attempt": attempt,
    }
    decision: _Parts = {
        "decision": _json_text(decided),
        "rule": _json_text(None if rule is None else f"{rule} ({place})"),
        "caller": _json_text(caller),
        "approval_id": _json_text(approval),
        "effect": _json_text(effect),
        "basis": _json_text(basis),
        "input_bytes": _VALUE,
    }
    how = {**({"output_checked": "false"} if is_unchecked else {}), **confined}
    ended = {"status_code": _VALUE, "latency_ms": _VALUE}
    # The class of an error and the arguments are whole members, present or not.
    execution = (
        f'{_members({**about, **ended})},{_VALUE}"redaction_applied":{_VALUE},'
        f"{_members({**how, **decision, 'output_bytes': _VALUE})}{_VALUE}"
    )
    return RecordForm(_members(envelope), execution, f"{_members({**about, **decision})}{_VALUE}")


@lru_cache(maxsize=_KEPT)
def _safe(text: str | None) -> str:
    """Return a caller's text as JSON, on one line and cut."""
    return _json_text(None if text is None else escaped(text))


@lru_cache(maxsize=_KEPT)
def _step(step: int | str) -> str:
    return _safe(step) if isinstance(step, str) else str(step)


# Stands for a value that differs from call to call. JSON has no such character, in or out of strings.
_VALUE: Final = "\0"
_TEXT: Final = f'"{_VALUE}"'
_Parts: TypeAlias = Mapping[str, str]


def _members(parts: _Parts) -> str:
    return ",".join(f'"{name}":{value}' for name, value in parts.items())


def _pieces(text: str) -> tuple[bytes, ...]:
    return tuple(text.encode().split(_VALUE.encode()))


def _template(pieces: Iterable[bytes]) -> bytes:
    """Return what `%` fills with the values between the pieces."""
    return b"%b".join(piece.replace(b"%", b"%%") for piece in pieces)


def _json_text(value: Any) -> str:
    """Return `shown_json` as text."""
    return shown_json(value).decode()


def shown_json(value: Any) -> bytes:
    """Return `value` as compact JSON, with the invisible characters of a caller's text escaped."""
    try:
        # Not `json_bytes`: its search for NaN takes longer than the writing, and a record has none.
        body = orjson.dumps(value)
    except orjson.JSONEncodeError:  # a caller's integer that is too long for orjson
        body = json_bytes(value)
    return escaped_json_bytes(body)
