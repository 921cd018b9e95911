"""Notifications and requests that the server sends, checked before they leave. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from portbook.canonical import NotJSON, json_bytes
from portbook.model import JSON, Draft, JSONObject
from portbook.protocol.message_validation import RESULT, Mode, SchemaValidator, first_of
from portbook.protocol.negotiation import LEVELS
from portbook.protocol.revisions_and_methods import Revision
from portbook.schema.engine import SchemaViolation

__all__ = ["META_SUBSCRIPTION", "Notifications", "is_heard", "level_in"]

META_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
_META_LEVEL: Final = "io.modelcontextprotocol/logLevel"


class Notifications:
    """Writes notifications and requests of the server."""

    def __init__(self, validator: SchemaValidator, mode: Mode, warn: Callable[[str], None]) -> None:
        self._validator = validator
        self._mode: Mode = mode
        self._warn = warn

    def progress(
        self,
        token: JSON,
        progress: float,
        total: float | None,
        message: Draft[str] | None,
        revision: Revision,
    ) -> Draft[bytes | None]:
        """Return a progress notification; None, once it is finished, where the revision does not allow it."""

        def params() -> JSONObject:
            told: JSONObject = {"progressToken": token, "progress": progress}
            if total is not None:
                told["total"] = total
            if message is not None:
                told["message"] = message.finish()
            return told

        size = 0 if message is None else message.size
        return Draft(size, lambda: self._reported("notifications/progress", params(), revision))

    def log(
        self, level: str, data: Draft[JSON], logger: str | None, revision: Revision
    ) -> Draft[bytes | None]:
        """Return a log message; None, once it is finished, where the revision does not allow it."""

        def params() -> JSONObject:
            told: JSONObject = {"level": level, "data": data.finish()}
            if logger is not None:
                told["logger"] = logger
            return told

        return Draft(data.size, lambda: self._reported("notifications/message", params(), revision))

    def notification(
        self, method: str, params: JSONObject, revision: Revision, subscription: JSON = None
    ) -> bytes:
        """Return a notification; in a subscription, with its id.

        Raises `SchemaViolation` where the revision does not allow it.
        """
        if subscription is not None:
            params = _tagged(params, subscription)
        message: JSONObject = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        self._check(method, message, revision)
        return json_bytes(message)

    def tagged(self, method: str, params: JSONObject, subscription: JSON) -> bytes:
        """Return a notification with a subscription's id, unchecked.

        For notifications of an extension, which the official schema does not have, and for one that was
        checked with a different id.
        """
        return json_bytes({"jsonrpc": "2.0", "method": method, "params": _tagged(params, subscription)})

    def ending(self, subscription: JSON, revision: Revision) -> bytes:
        """Return the result that ends a subscription; its id is that of the request.

        Raises `SchemaViolation` where the revision does not allow it.
        """
        result = _tagged({"resultType": "complete"}, subscription)
        self._check("subscriptions/listen" + RESULT, result, revision)
        return json_bytes(result)

    def request(self, identifier: str, request: JSONObject, revision: Revision) -> bytes:
        """Return a request to the client.

        Raises `SchemaViolation` where the revision does not allow it.
        """
        message: JSONObject = {"jsonrpc": "2.0", "id": identifier, **request}
        self._check(str(request["method"]), message, revision)
        return json_bytes(message)

    def is_answer(self, method: str, result: JSON, revision: Revision) -> bool:
        """Return whether the revision allows a client's result for a request of this method."""
        return self._mode == "off" or not self._validator.findings(method + RESULT, result, revision.name)

    def _reported(self, method: str, params: JSONObject, revision: Revision) -> bytes | None:
        """Return a report, or warn: its tool has continued meanwhile, and can no longer be told."""
        try:
            return self.notification(method, params, revision)
        except SchemaViolation as violation:
            why = f"breaks {revision.name}: {first_of(violation.findings)}"
        except NotJSON as flaw:
            why = f"is not JSON: {flaw}"
        self._warn(f"outgoing {method} was not sent: it {why}")
        return None

    def _check(self, definition: str, message: JSONObject, revision: Revision) -> None:
        if self._mode == "off":
            return
        findings = self._validator.findings(definition, message, revision.name)
        if not findings:
            return
        if self._mode == "enforce":
            raise SchemaViolation(findings)
        method = definition.removesuffix(RESULT)
        self._warn(f"outgoing {method} breaks {revision.name}: {first_of(findings)}")


# Which log messages a client gets.


def is_heard(level: str, least: str | None) -> bool:
    """Return whether a client gets log messages of a level; it set `least`, or None where it wants none."""
    return least is not None and LEVELS.index(level) >= LEVELS.index(least)


def level_in(meta: JSONObject) -> str | None:
    """Return the level that a request sets for its own log messages; None where it wants none."""
    level = meta.get(_META_LEVEL)
    return level if isinstance(level, str) and level in LEVELS else None


def _tagged(params: JSONObject, subscription: JSON) -> JSONObject:
    return {**params, "_meta": {META_SUBSCRIPTION: subscription}}
