"""Findings in words: short, stable, and free of the checked document's values.

Each kind of violation has one sentence, made from the schema's side of it (its limits, its property names).
A name that only the document has, such as an unexpected property's, is shortened and escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from portbook.canonical import json_bytes

__all__ = ["escape_pointer", "shorten", "words"]

_MAX_NAME = 60
_MAX_POINTER = 300


def escape_pointer(path: Iterable[str | int]) -> str:
    """Return `path` as an RFC 6901 pointer, cut where a hostile name makes it too long."""
    pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return pointer if len(pointer) <= _MAX_POINTER else pointer[:_MAX_POINTER] + "…"


def shorten(name: str) -> str:
    """Return `name` quoted, its control characters escaped, at most `_MAX_NAME` characters of it."""
    return json.dumps(name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "…")


def _listed(values: list[Any]) -> str:
    shown = ", ".join(json_bytes(value).decode() for value in values[:8])
    text = shown if len(values) <= 8 else f"{shown}, …"
    return text if len(text) <= 200 else text[:200] + "…"


def _named(names: list[str]) -> str:
    shown = ", ".join(shorten(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"


def _count(number: int, noun: str) -> str:
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number} {noun if number == 1 else plural}"


def _forms(branches: list[list[Any]]) -> str:
    """Return what the branches ask for, where each fails in one way and on the value itself."""
    alone = [errors[0] for errors in branches if len(errors) == 1]
    if (
        len(alone) != len(branches)
        or len(alone) > 4
        or len({tuple(error.instance_path) for error in alone}) != 1
    ):
        return "matches none of the allowed forms"
    sentences = list(dict.fromkeys(words(error.kind) for error in alone))
    return " or ".join([sentences[0], *(sentence.removeprefix("expected ") for sentence in sentences[1:])])


_SENTENCES: dict[str, Callable[[Any], str]] = {
    "AdditionalItems": lambda kind: f"has more than {_count(kind.limit, 'item')}",
    "AdditionalProperties": lambda kind: f"unexpected property {_named(kind.unexpected)}",
    "AnyOf": lambda kind: _forms(kind.context),
    "BacktrackLimitExceeded": lambda kind: "too costly to match against its pattern",
    "Constant": lambda kind: f"must be {_listed([kind.expected_value])}",
    "Contains": lambda kind: "holds too few or too many items of the required form",
    "ContentEncoding": lambda kind: f"is not {kind.content_encoding} encoded",
    "ContentMediaType": lambda kind: f"does not hold {kind.content_media_type}",
    "Enum": lambda kind: f"must be one of {_listed(kind.options)}",
    "ExclusiveMaximum": lambda kind: f"must be below {kind.limit}",
    "ExclusiveMinimum": lambda kind: f"must be above {kind.limit}",
    "FalseSchema": lambda kind: "nothing is allowed here",
    "Format": lambda kind: f"is not a valid {kind.format}",
    "MaxItems": lambda kind: f"has more than {_count(kind.limit, 'item')}",
    "Maximum": lambda kind: f"above the maximum {kind.limit}",
    "MaxLength": lambda kind: f"longer than {_count(kind.limit, 'character')}",
    "MaxProperties": lambda kind: f"has more than {_count(kind.limit, 'property')}",
    "MinItems": lambda kind: f"has fewer than {_count(kind.limit, 'item')}",
    "Minimum": lambda kind: f"below the minimum {kind.limit}",
    "MinLength": lambda kind: f"shorter than {_count(kind.limit, 'character')}",
    "MinProperties": lambda kind: f"has fewer than {_count(kind.limit, 'property')}",
    "MultipleOf": lambda kind: f"must be a multiple of {kind.multiple_of}",
    "Not": lambda kind: "has a form that is not allowed",
    "OneOfMultipleValid": lambda kind: "matches more than one of the allowed forms",
    "OneOfNotValid": lambda kind: _forms(kind.context),
    "Pattern": lambda kind: f"does not match the pattern {shorten(kind.pattern)}",
    "PropertyNames": lambda kind: "has a property name that is not allowed",
    "Required": lambda kind: f"missing property {shorten(kind.property)}",
    "Type": lambda kind: f"expected {' or '.join(kind.types)}",
    "UnevaluatedItems": lambda kind: "has items that are not allowed",
    "UnevaluatedProperties": lambda kind: f"unexpected property {_named(kind.unexpected)}",
    "UniqueItems": lambda kind: "has the same item twice",
}


def words(kind: object) -> str:
    """Return the sentence for one kind of violation."""
    sentence = _SENTENCES.get(type(kind).__name__)
    return sentence(kind) if sentence else "breaks the schema"
