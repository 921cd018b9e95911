"""Questions that a tool can ask its caller: a form, a page to open, a model's answer, the client's roots.

Each question builds its MCP request and parses the answer. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from portbook.canonical import fingerprint
from portbook.model import JSON, JSONObject
from portbook.schema.engine import validator_for

__all__ = ["Answered", "Form", "OpenPage", "Question", "Roots", "Sample", "Sampled"]


class Answered(NamedTuple):
    """A user's answer: whether they accepted, and what they filled in."""

    action: Literal["accept", "decline", "cancel"]
    """Whether the user accepted, declined or cancelled."""
    content: Any
    """The filled-in form: an object, or an instance of the requested type; empty or None if not accepted."""

    @property
    def is_accepted(self) -> bool:
        """Whether the user accepted."""
        return self.action == "accept"

    @property
    def data(self) -> Any:
        """The same as `content`."""
        return self.content


class Sampled(NamedTuple):
    """The answer of the client's model."""

    text: str
    """Its text."""
    message: JSONObject
    """The whole answer: role, content, model and stop reason."""


class Question:
    """A question to the caller."""

    __slots__ = ()

    def request(self) -> JSONObject:
        """Return the MCP request: a method and its params."""
        raise NotImplementedError

    def read(self, answer: JSONObject) -> Any:
        """Parse `answer`; return None where it does not answer this question."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Form(Question):
    """A form for the client's user: a message, and the fields to fill in."""

    message: str
    schema: Any = field(default_factory=lambda: cast("JSONObject", {"properties": {}}))
    """A JSON Schema of flat properties, or a type: a model, a dataclass, or a plain type such as `bool`."""

    def request(self) -> JSONObject:
        """Return the MCP request.

        Raises `TypeError` where its type cannot be shown as a form.
        """
        return {
            "method": "elicitation/create",
            "params": {"message": self.message, "requestedSchema": self._filling()[0]},
        }

    def read(self, answer: JSONObject) -> Answered | None:
        """Return the user's answer; None where it does not match the schema."""
        action, content = answer.get("action"), answer.get("content")
        if action not in ("accept", "decline", "cancel"):
            return None
        if action != "accept":
            return Answered(cast("Any", action), None if self._is_typed else {})
        schema, make = self._filling()
        given = content if isinstance(content, dict) else {}
        if not validator_for(schema).is_valid(given):
            return None
        try:
            return Answered("accept", make(given))
        except ValueError:  # the type has rules that a schema cannot express
            return None

    @property
    def _is_typed(self) -> bool:
        return not isinstance(self.schema, dict)

    def _filling(self) -> tuple[JSONObject, Callable[[JSONObject], Any]]:
        if not self._is_typed:
            return {"type": "object", **cast("JSONObject", self.schema)}, lambda given: given
        from portbook.tools.pydantic_schemas_and_forms import (
            form_of,  # loads pydantic only where a type is given
        )

        return form_of(self.schema)


@dataclass(frozen=True, slots=True)
class OpenPage(Question):
    """A page for the user to open, for data that must not pass through the client: a password, a payment."""

    message: str
    url: str
    identifier: str = ""
    """The `elicitationId` for clients of the handshake era. By default derived from the question, so that it
    is the same in each round."""

    def request(self) -> JSONObject:
        """Return the MCP request."""
        own = self.identifier or fingerprint([self.message, self.url])[:32]
        params: JSONObject = {"mode": "url", "message": self.message, "url": self.url, "elicitationId": own}
        return {"method": "elicitation/create", "params": params}

    def read(self, answer: JSONObject) -> Answered | None:
        """Return whether the user agreed to open the page."""
        action = answer.get("action")
        return Answered(cast("Any", action), {}) if action in ("accept", "decline", "cancel") else None


@dataclass(frozen=True, slots=True)
class Sample(Question):
    """A prompt for the client's model, with a limit of tokens and a `system` prompt."""

    prompt: str
    max_tokens: int = 1000
    system: str | None = None
    more: JSONObject = field(default_factory=dict[str, JSON])
    """Further params of `sampling/createMessage`."""

    def request(self) -> JSONObject:
        """Return the MCP request."""
        params: JSONObject = {
            "messages": [{"role": "user", "content": {"type": "text", "text": self.prompt}}],
            "maxTokens": self.max_tokens,
        }
        if self.system is not None:
            params["systemPrompt"] = self.system
        return {"method": "sampling/createMessage", "params": {**params, **self.more}}

    def read(self, answer: JSONObject) -> Sampled | None:
        """Return the model's answer."""
        content = answer.get("content")
        if "role" not in answer or "model" not in answer:
            return None
        blocks = content if isinstance(content, list) else [content]
        texts = [block.get("text") for block in blocks if isinstance(block, dict)]
        return Sampled("".join(text for text in texts if isinstance(text, str)), answer)


@dataclass(frozen=True, slots=True)
class Roots(Question):
    """The folders and files that the client works in: a list of objects with a `uri`."""

    def request(self) -> JSONObject:
        """Return the MCP request."""
        return {"method": "roots/list", "params": {}}

    def read(self, answer: JSONObject) -> list[JSONObject] | None:
        """Return the roots, each with its `uri` and perhaps a `name`."""
        roots = answer.get("roots")
        if not isinstance(roots, list):
            return None
        return [root for root in roots if isinstance(root, dict)]
