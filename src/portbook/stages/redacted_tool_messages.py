"""A client to which a running tool sends redacted messages only. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, cast

from portbook.canonical import json_bytes
from portbook.model import JSON, Client, Draft, DraftReport, JSONObject, Report
from portbook.stages.ports import LARGE_BYTES, OffLoop
from portbook.stages.state import CallState

__all__ = ["RedactedClient", "redacted_client", "redacted_report"]

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
