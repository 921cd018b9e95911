"""A client to which a running tool sends redacted messages only. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

from portbook.canonical import NotJSON, json_bytes
from portbook.model import JSON, Client, JSONObject
from portbook.stages.ports import LARGE_BYTES
from portbook.stages.state import CallState

__all__ = ["RedactedClient", "redacted_client"]


def redacted_client(state: CallState) -> RedactedClient | None:
    """Return the client of a call for its tool; None where the tool cannot reach it."""
    client = state.exchange.client()
    return None if client is None else RedactedClient(client, state)


class RedactedClient:
    """The client of a call; logs and questions to it are redacted."""

    __slots__ = ("_client", "_state")

    def __init__(self, client: Client, state: CallState) -> None:
        self._client = client
        self._state = state

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

    def log(self, level: str, data: JSON, logger: str | None) -> None:
        """Send a log message to the client, if it subscribed to that level; a note for one that is too long.

        Redaction of more would hold the event loop, and nobody reads it.
        """
        try:
            size = len(json_bytes(data))
        except NotJSON:
            return self._client.log(level, data, logger)  # refused there, if anybody wants it
        if size > LARGE_BYTES:
            data = f"[a log message of {size} bytes was left out]"
        return self._client.log(level, self._without_secrets(data), logger)

    async def ask(
        self, requests: Mapping[str, JSONObject], is_usable: Callable[[str, JSONObject], bool]
    ) -> dict[str, JSONObject]:
        """Return the answers to `requests`.

        Raises as the client does.
        """
        told = {key: cast("JSONObject", self._without_secrets(each)) for key, each in requests.items()}
        return await self._client.ask(told, is_usable)

    def detach(self, message: str | None = None) -> bool:
        """Continue as a task, if the client supports tasks; return whether it does."""
        return self._client.detach(message)

    def let_go(self) -> None:
        """Close the stream that the client waits on, if the client can resume it."""
        self._client.let_go()

    def _without_secrets(self, value: JSON) -> JSON:
        redactor = self._state.redactor
        if redactor is None:
            return value
        told, is_redacted = redactor.redact(value)
        self._state.is_redacted = self._state.is_redacted or is_redacted
        return told
