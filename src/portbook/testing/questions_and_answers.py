"""What a tool asks of its caller, and the answers that a test gives. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, cast

from portbook.model import JSONObject
from portbook.schema.engine import validator_for

__all__ = [
    "Answers",
    "Inquiry",
    "capabilities_of",
    "given_by",
    "inquiry_of",
    "require_answers",
    "response_to",
]

_FORMS: Final[JSONObject] = {"elicitation": {"form": {}}}
_EVERYTHING: Final[JSONObject] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Something that a tool asks of its caller, handed to the function that `answers` is.

    The function returns a dict of its fields for a form; for a form or a page it can also return `True` to
    accept, `False` to decline and `None` to cancel. For a sample it returns the model's words, for roots a
    list of URIs. It may be a coroutine function.
    """

    kind: Literal["form", "page", "sample", "roots"]
    """`form` and `page` are for a person, `sample` is for the client's model."""
    message: str
    """What is asked: the sentence above the form, why to open the page, or the prompt."""
    fields: dict[str, Any]
    """What there is to fill in: a JSON Schema for each field of a form."""
    request: dict[str, Any]
    """The whole of it, as MCP has it: a method and its params."""


Answers: TypeAlias = Mapping[str, Any] | Callable[[Inquiry], Any]
"""What a test answers with: the fields of forms by name, or a function that gets each `Inquiry`."""


def require_answers(answers: Answers | None) -> None:
    """Raise `TypeError` for what can answer nothing."""
    given: Any = answers
    if not (given is None or isinstance(given, Mapping) or callable(given)):
        raise TypeError(f"answers= is a mapping of fields or a function, not {type(given).__qualname__}")


def capabilities_of(answers: Answers | None) -> JSONObject:
    """Return what a client declares that has these answers: a mapping fills in forms and nothing else."""
    if answers is None:
        return {}
    return _EVERYTHING if callable(answers) else _FORMS


def inquiry_of(request: Mapping[str, Any]) -> Inquiry:
    """Return a request of the server's as what it asks."""
    params = cast("dict[str, Any]", request.get("params") or {})
    whole = {"method": request["method"], "params": params}
    if request["method"] == "sampling/createMessage":
        texts = [message["content"].get("text", "") for message in params["messages"]]
        return Inquiry("sample", "\n".join(texts), {}, whole)
    if request["method"] == "roots/list":
        return Inquiry("roots", "", {}, whole)
    if params.get("mode") == "url":
        return Inquiry("page", params["message"], {}, whole)
    return Inquiry("form", params["message"], params["requestedSchema"]["properties"], whole)


def given_by(answers: Answers, inquiry: Inquiry) -> Any:
    """Return what the test answers; the function may be a coroutine function.

    Raises `LookupError` where a mapping has no answer, and whatever the function raises.
    """
    if callable(answers):
        return answers(inquiry)
    if inquiry.kind != "form":
        raise LookupError(
            f"a mapping of answers fills in forms, and the tool asks for a {inquiry.kind}; give a function"
        )
    required = inquiry.request["params"]["requestedSchema"].get("required", ())
    missing = [name for name in required if name not in answers]
    if missing:
        raise LookupError(f"the tool asks {inquiry.message!r}, and answers has no {', '.join(missing)}")
    return {name: answers[name] for name in inquiry.fields if name in answers}


def response_to(inquiry: Inquiry, given: Any) -> JSONObject:
    """Return the client's answer, as `Inquiry` says.

    Raises `TypeError` and `ValueError` for what is no answer to the question.
    """
    if inquiry.kind == "sample":
        if isinstance(given, str):
            text = {"type": "text", "text": given}
            return {"role": "assistant", "content": cast("JSONObject", text), "model": "portbook.testing"}
        if isinstance(given, dict):
            return cast("JSONObject", given)
        raise TypeError("a sample is answered with a text, or with a whole message as a dict")
    if inquiry.kind == "roots":
        if not isinstance(given, list):
            raise TypeError("roots are answered with a list of URIs")
        each = cast("list[Any]", given)
        return {"roots": [{"uri": root} if isinstance(root, str) else root for root in each]}
    if given is None or given is False:
        return {"action": "cancel" if given is None else "decline"}
    if inquiry.kind == "page":
        return {"action": "accept"}
    content: Any = {} if given is True else given
    if not isinstance(content, dict):
        raise TypeError("a form is answered with a dict of its fields, True, False or None")
    findings = validator_for(inquiry.request["params"]["requestedSchema"]).findings(content)
    if findings:
        listed = "; ".join(f"{finding.pointer or '(root)'}: {finding.message}" for finding in findings)
        raise ValueError(f"this does not answer {inquiry.message!r}: {listed}")
    return {"action": "accept", "content": cast("JSONObject", content)}
