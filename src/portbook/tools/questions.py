"""What a tool can ask of its caller: a form, a page to open, a model's answer, the folders it works in.

Each question knows its MCP request, what the client must be able to do for it, and how to read the answer.
Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, cast

from portbook.canonical import fingerprint
from portbook.model import JSON, JSONObject
from portbook.schema.cache import validator_for

__all__ = ["Answered", "Form", "OpenPage", "Question", "Roots", "Sample", "Sampled", "missing_for"]

# What a client must have declared to be asked with a method.
_NEEDS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


class Answered(NamedTuple):
    """What a person answered: whether they did, and what they filled in."""

    action: Literal["accept", "decline", "cancel"]
    """What they did with the question."""
    content: Any
    """What they filled in: an object (empty without a yes), or one of the type asked for (or None)."""

    @property
    def is_accepted(self) -> bool:
        """Whether they said yes."""
        return self.action == "accept"

    @property
    def data(self) -> Any:
        """The same as `content`."""
        return self.content


class Sampled(NamedTuple):
    """What the client's model said."""

    text: str
    """Its words."""
    message: JSONObject
    """The whole answer: role, content, model, and why it stopped."""


class Question:
    """Something to ask."""

    __slots__ = ()

    def request(self) -> JSONObject:
        """Return it as MCP's request: a method and its params."""
        raise NotImplementedError

    def read(self, answer: JSONObject) -> Any:
        """Return what the answer says; None where it is none to this question."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Form(Question):
    """A form for a person: a sentence, and what to fill in."""

    message: str
    schema: Any = field(default_factory=lambda: cast("JSONObject", {"properties": {}}))
    """A JSON Schema of flat properties, or a type: a model, a dataclass, or a plain type such as `bool`."""

    def request(self) -> JSONObject:
        """Return it as MCP's request.

        Raises `TypeError` where its type is no form.
        """
        return {
            "method": "elicitation/create",
            "params": {"message": self.message, "requestedSchema": self._filling()[0]},
        }

    def read(self, answer: JSONObject) -> Answered | None:
        """Return what the person said, where what they filled in is what was asked for."""
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
        except ValueError:  # the type has rules that a schema cannot tell
            return None

    @property
    def _is_typed(self) -> bool:
        return not isinstance(self.schema, dict)

    def _filling(self) -> tuple[JSONObject, Callable[[JSONObject], Any]]:
        if not self._is_typed:
            return {"type": "object", **cast("JSONObject", self.schema)}, lambda given: given
        from portbook.tools.forms import form_of  # pydantic, only where a type is asked for

        return form_of(self.schema)


@dataclass(frozen=True, slots=True)
class OpenPage(Question):
    """A page for a person to open, for what must not pass through the client: a password, a payment."""

    message: str
    url: str
    identifier: str = ""
    """What clients of the handshake era know it by. Without one, it is made of the question, so that it is
    the same from round to round."""

    def request(self) -> JSONObject:
        """Return it as MCP's request."""
        own = self.identifier or fingerprint([self.message, self.url])[:32]
        params: JSONObject = {"mode": "url", "message": self.message, "url": self.url, "elicitationId": own}
        return {"method": "elicitation/create", "params": params}

    def read(self, answer: JSONObject) -> Answered | None:
        """Return whether the person agreed to open it."""
        action = answer.get("action")
        return Answered(cast("Any", action), {}) if action in ("accept", "decline", "cancel") else None


@dataclass(frozen=True, slots=True)
class Sample(Question):
    """Something for the client's model to answer: a prompt, the most to say, and a `system` prompt."""

    prompt: str
    max_tokens: int = 1000
    system: str | None = None
    more: JSONObject = field(default_factory=dict[str, JSON])
    """Further params of `sampling/createMessage`."""

    def request(self) -> JSONObject:
        """Return it as MCP's request."""
        params: JSONObject = {
            "messages": [{"role": "user", "content": {"type": "text", "text": self.prompt}}],
            "maxTokens": self.max_tokens,
        }
        if self.system is not None:
            params["systemPrompt"] = self.system
        return {"method": "sampling/createMessage", "params": {**params, **self.more}}

    def read(self, answer: JSONObject) -> Sampled | None:
        """Return what the model said."""
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
        """Return it as MCP's request."""
        return {"method": "roots/list", "params": {}}

    def read(self, answer: JSONObject) -> list[JSONObject] | None:
        """Return the roots, each with its `uri` and perhaps a `name`."""
        roots = answer.get("roots")
        if not isinstance(roots, list):
            return None
        return [root for root in roots if isinstance(root, dict)]


def missing_for(request: JSONObject, capabilities: JSONObject) -> JSONObject | None:
    """Return what a client would have to declare to be asked with `request`; None where it has.

    A client that declares `elicitation` and nothing in it can show forms, and only those.
    """
    name = _NEEDS[cast("str", request["method"])]
    declared = capabilities.get(name)
    params = request.get("params")
    if name != "elicitation":
        return None if isinstance(declared, dict) else {name: {}}
    mode = params.get("mode", "form") if isinstance(params, dict) else "form"
    if isinstance(declared, dict) and (mode in declared or (mode == "form" and not declared)):
        return None
    is_named = mode != "form" or isinstance(declared, dict)
    return {name: {cast("str", mode): {}} if is_named else {}}
