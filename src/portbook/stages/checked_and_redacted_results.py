"""Validates a tool's result and redacts it, or refuses to give it; redacts its messages. Pure: no I/O.

What happens to secrets depends on the tool. Most results are redacted. A document that has to arrive as it
is (a schema, an example, a patch) is never altered: the call fails if the document holds a secret.

`RedactedClient` is the client to which a running tool sends redacted messages only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes, rewritten_bytes, without_nan
from portbook.clock import Clock
from portbook.envelope.call_envelope import KnownRun
from portbook.errors import Failed, Finding, Reason, Refused
from portbook.model import JSON, NO_WISH, Client, Draft, DraftReport, JSONObject, Kind, Occasion, Report
from portbook.redaction import Redactor
from portbook.schema.engine import LateValidator, Validator, compile_official
from portbook.stages.ports import LARGE_BYTES, OffLoop
from portbook.stages.state import CallState
from portbook.tools.catalog import Tool
from portbook.wire.parsing import parse

__all__ = [
    "RedactedClient",
    "bytes_of",
    "checked_relay",
    "enclosed",
    "has_null",
    "is_suspect",
    "may_be_enclosed",
    "redacted",
    "redacted_client",
    "redacted_report",
    "require_finite",
]

# Searches a megabyte in a tenth of the time that Python takes.
_HAS_NULL: Final = LateValidator(lambda: compile_official({"pattern": "null"}, ""))


def bytes_of(result: Any) -> bytes:
    """Return a result as JSON.

    Raises `Failed` where JSON cannot hold it.
    """
    try:
        body = rewritten_bytes(result)
    except NotJSON as error:
        raise _not_json(error) from None
    may_have_nan = has_null(body.decode()) if len(body) > LARGE_BYTES else b"null" in body
    if may_have_nan:
        require_finite(body, result)
    return body


def has_null(text: str) -> bool:
    """Return whether the word null is in a large text."""
    return _HAS_NULL.accepts(text)


def require_finite(body: bytes, result: Any) -> None:
    """Raise `Failed` where a null of `body` stands for a number that JSON does not have."""
    try:
        without_nan(body, result)
    except NotJSON as error:
        raise _not_json(error) from None


def _not_json(error: NotJSON) -> Failed:
    return Failed(Reason.BAD_RESULT, (Finding("", str(error), "json", ""),))


def is_suspect(body: bytes, text: str, tool: Tool, state: CallState) -> bool:
    """Return whether a result may contain a secret that the caller must not get; a no is always right.

    `text` is the text of its JSON `body`.
    """
    redactor = state.in_force.rules.redactor
    return redactor is not None and tool.spec.secrets != "give" and redactor.might_touch(body, text)


def redacted(
    result: Any, body: bytes, tool: Tool, output: Validator, state: CallState, redactor: Redactor
) -> tuple[JSON, bytes]:
    """Return a suspect result and its bytes as the caller may have them.

    Raises `Failed` where the output schema does not allow it, and where it may be neither given nor altered.
    """
    if tool.spec.secrets == "refuse":
        _require_no_secret(result, tool.spec.kind, redactor)
        return result, body
    result, is_redacted = redactor.redact(result)
    if is_redacted:
        state.is_redacted = True
        body = json_bytes(result)
        if not output.allows(result):  # withheld: the redacted result breaks the schema
            raise Failed(Reason.BAD_RESULT, output.findings(result))
    return result, body


def checked_relay(
    result: Any, body: bytes, tool: Tool, state: CallState, *, is_clean: bool = False
) -> tuple[JSON, JSON, bytes]:
    """Return the whole result of an MCP server's tool as the caller may have it, its value, and its bytes.

    The value is the structured content, which the output schema describes, or else the content.

    Raises `Failed` where the output schema does not allow it.
    """
    whole: JSON = result
    _require_structure(result, tool)
    redactor = state.redactor
    if not is_clean and redactor is not None and redactor.might_touch(body):
        whole, is_redacted = redactor.redact(result)
        if is_redacted:
            state.is_redacted = True
            _require_structure(whole, tool)
    value = _value_in(cast("dict[str, JSON]", whole))
    return whole, value, json_bytes(value)


def _value_in(whole: dict[str, JSON]) -> JSON:
    return whole["structuredContent"] if "structuredContent" in whole else {"content": whole["content"]}


def _require_structure(whole: Any, tool: Tool) -> None:
    if tool.spec.output_schema is True:
        return
    if "structuredContent" not in whole:
        finding = Finding(
            "/structuredContent", "missing, although the tool has an output schema", "required", ""
        )
        raise Failed(Reason.BAD_RESULT, (finding,))
    structured = whole["structuredContent"]
    if not tool.output.allows(structured):
        findings = (
            each._replace(pointer=f"/structuredContent{each.pointer}")
            for each in tool.output.findings(structured)
        )
        raise Failed(Reason.BAD_RESULT, tuple(findings))


def _require_no_secret(result: Any, kind: Kind, redactor: Redactor) -> None:
    for document in _documents(result) if kind == "resource" else (result,):
        pointer = redactor.place_of_secret(document)
        if pointer is not None:
            raise Failed(Reason.NOT_REDACTABLE, details={"pointer": pointer})


def _documents(contents: list[dict[str, Any]]) -> list[JSON]:
    """Return the documents in the contents of a resource: a pointer is one into the document."""
    return [_document(cast("str", block["text"])) for block in contents if "text" in block]


def _document(text: str) -> JSON:
    try:
        return parse(text.encode())
    except Refused:
        return text


# The envelope around a result, if the caller or the operator wants one. Pure but for the clock.

# A deterministic envelope says nothing of when it was made.
_UNTOLD: Final = Occasion()


def may_be_enclosed(state: CallState) -> bool:
    """Return whether the result may have to be put into an envelope; a no is always right."""
    wish = state.call.wish
    return (wish is not None and wish is not NO_WISH) or state.rules.enclosing.is_default


def enclosed(state: CallState, outcome: JSON | Failed, clock: Clock) -> JSONObject | None:
    """Return the envelope of an outcome, if the caller or the operator wants one."""
    call, rules = state.call, state.rules
    controls = rules.enclosing.controls_of(call.wish)
    if controls is None or not controls.is_wanted or state.tool is None or state.decision is None:
        return None
    occasion = _UNTOLD
    if not controls.deterministic:
        took_ms = round((clock.tick() - state.started) * 1000, 3)
        occasion = Occasion(state.identity.request, clock.now(), took_ms)
    policy = rules.policy
    known = KnownRun(
        state.tool,
        call.arguments,
        policy.digest,
        state.decision.rule,
        policy.digest_of_rule,
        occasion,
        state.is_redacted,
    )
    return rules.enclosing.enclose(outcome, controls, call.wish, known)


# Messages of a running tool.

# The longest message of a tool beside its progress, in characters.
_MAX_MESSAGE: Final = 2000


def redacted_client(state: CallState, off_loop: OffLoop) -> RedactedClient | None:
    """Return the client of a call for its tool; None where the tool cannot reach it."""
    client = state.exchange.client()
    return None if client is None else RedactedClient(client, state, off_loop)


_FORM: Final = "requestedSchema"
# Longer than any name of a logger.
_MAX_LOGGER: Final = 1000


class RedactedClient:
    """The client of a call; logs and questions to it are redacted."""

    __slots__ = ("_client", "_off_loop", "_state")

    def __init__(self, client: Client, state: CallState, off_loop: OffLoop) -> None:
        self._client = client
        self._state = state
        self._off_loop = off_loop

    @property
    def capabilities(self) -> JSONObject:
        """Return the capabilities that the client declared."""
        return self._client.capabilities

    @property
    def is_waiting(self) -> bool:
        """Return whether the tool waits for an answer."""
        return self._client.is_waiting

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return the capability that the client lacks for `request`; None if it can be asked."""
        return self._client.lacks(request)

    def hears(self, level: str) -> bool:
        """Return whether the client asked for log messages of that level."""
        return self._client.hears(level)

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Send a log message to the client; a note for one that is too long.

        Redaction of more would hold the event loop, and nobody reads it.
        """
        named = self._named(logger)
        if data.size > LARGE_BYTES:
            note: JSON = f"[a log message of {data.size} bytes was left out]"
            self._client.log(level, Draft(0, lambda: note), named)
        else:
            told: Draft[JSON] = Draft(data.size, lambda: self._without_secrets(data.finish()))
            self._client.log(level, told, named)

    def _named(self, logger: str | None) -> str | None:
        """Return the name of a logger without secrets; None for a text that is too long to be a name."""
        if logger is None or len(logger) > _MAX_LOGGER:
            return None
        return cast("str", self._without_secrets(logger))

    async def room(self) -> None:
        """Wait for room for the next report."""
        await self._client.room()

    def flush(self) -> None:
        """Send every report that waits."""
        self._client.flush()

    async def ask(
        self, requests: Mapping[str, JSONObject], is_usable: Callable[[str, JSONObject], bool]
    ) -> dict[str, JSONObject]:
        """Return the answers to `requests`.

        Raises as the client does.
        """
        return await self._client.ask(await self._redacted(requests), is_usable)

    @property
    def answers_later(self) -> bool:
        """Return whether the client answers with its next request."""
        return self._client.answers_later

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """End the round; always raises `InputNeeded`."""
        await self._client.end_round(await self._redacted(requests), memo)

    def detach(self, message: str | None = None) -> bool:
        """Continue as a task, if the client supports tasks; return whether it does."""
        return self._client.detach(message)

    def let_go(self) -> None:
        """Close the stream that the client waits on, if the client can resume it."""
        self._client.let_go()

    def complete_elicitation(self, identifier: str) -> None:
        """Tell the client that its user is done with a page."""
        self._client.complete_elicitation(identifier)

    async def _redacted(self, requests: Mapping[str, JSONObject]) -> dict[str, JSONObject]:
        asked = cast("JSONObject", dict(requests))
        redact = partial(self._without_secrets_in_each, asked)
        is_large = len(json_bytes(asked)) > LARGE_BYTES
        return await self._off_loop.run(redact) if is_large else redact()

    def _without_secrets_in_each(self, requests: JSONObject) -> dict[str, JSONObject]:
        # One by one: the keys are names that the tool gave, and say nothing of the values.
        return {key: self._without_secrets_in(cast("JSONObject", each)) for key, each in requests.items()}

    def _without_secrets_in(self, request: JSONObject) -> JSONObject:
        """Redact a question. The fields of a form are names: one that is called `token` is no token."""
        params = request.get("params")
        form = params.get(_FORM) if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(form, dict):
            return cast("JSONObject", self._without_secrets(request))
        rest: JSONObject = {name: value for name, value in params.items() if name != _FORM}
        told = cast("JSONObject", self._without_secrets({**request, "params": rest}))
        return {**told, "params": {**cast("JSONObject", told["params"]), _FORM: self._texts_of(form)}}

    def _texts_of(self, form: JSON) -> JSON:
        """Redact the texts in a form, under whatever names they are."""
        if isinstance(form, dict):
            return {name: self._texts_of(value) for name, value in form.items()}
        if isinstance(form, list):
            return [self._texts_of(each) for each in form]
        return self._without_secrets(form)

    def _without_secrets(self, value: JSON) -> JSON:
        redactor = self._state.redactor
        if redactor is None:
            return value
        told, is_redacted = redactor.redact(value)
        self._state.is_redacted = self._state.is_redacted or is_redacted
        return told


def redacted_report(report: DraftReport, state: CallState) -> Report:
    """Return `report` with its messages cut, and redacted when they are sent."""

    def tell(progress: float, total: float | None, message: str | None) -> None:
        cut = None if message is None else message[:_MAX_MESSAGE]
        report(progress, total, None if cut is None else Draft(len(cut), partial(state.without_secrets, cut)))

    return tell
