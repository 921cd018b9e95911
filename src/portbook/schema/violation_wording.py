"""Messages of findings: short, stable, and without values of the document. Pure: no I/O.

Each kind of violation has one message, built from the schema's limits and property names. A name that occurs
only in the document, such as that of an unexpected property, is shortened and escaped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, cast

from portbook.canonical import json_bytes

__all__ = [
    "UNEXPECTED",
    "escape_pointer",
    "may_be_elsewhere",
    "places_of",
    "shorten",
    "tell",
    "whole_pointer",
    "words",
]

# Finds the exact place of an error: the validator library leaves empty names out of its paths.
#
# For `{"": 1}` with an error at `/`, the library reports the root. It also reports the invalid value, so the
# path to that value can be searched for.

Step = str | int

# No real document has more paths through empty names.
_MAX_PLACES: Final = 100


def may_be_elsewhere(encoded: bytes) -> bool:
    """Return whether a document may have an empty name; text that looks like one counts too."""
    return b'"":' in encoded


def places_of(payload: Any, path: Sequence[Step], value: Any) -> list[tuple[Step, ...]]:
    """Return every path in `payload` that `path` may mean and that holds `value`, the likeliest first."""
    found: list[tuple[Step, ...]] = []
    for place, there in _ways(payload, tuple(path), ()):
        if type(there) is type(value) and there == value:
            found.append(place)
            if len(found) == _MAX_PLACES:
                break
    return found or [tuple(path)]


def _ways(
    here: Any, left: tuple[Step, ...], done: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield the paths that `left` may mean from `here`, those with the fewest empty names first."""
    if not left:
        yield done, here
    elif isinstance(here, dict) and left[0] in here:
        yield from _ways(cast("dict[Step, Any]", here)[left[0]], left[1:], (*done, left[0]))
    elif isinstance(here, list) and isinstance(left[0], int) and left[0] < len(cast("list[Any]", here)):
        yield from _ways(here[left[0]], left[1:], (*done, left[0]))
    if isinstance(here, dict) and "" in here:
        yield from _ways(cast("dict[Step, Any]", here)[""], left, (*done, ""))


_MAX_NAME = 60
_MAX_POINTER = 300


def whole_pointer(path: Iterable[str | int]) -> str:
    """Return `path` as an RFC 6901 pointer."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def escape_pointer(path: Iterable[str | int]) -> str:
    """Return `path` as an RFC 6901 pointer, truncated where a hostile name makes it too long."""
    pointer = whole_pointer(path)
    return pointer if len(pointer) <= _MAX_POINTER else pointer[:_MAX_POINTER] + "…"


def shorten(name: str) -> str:
    """Return `name` quoted, with control characters escaped, truncated to `_MAX_NAME` characters."""
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


# The start of messages about unexpected properties; their names follow, quoted as in JSON.
UNEXPECTED: Final = "unexpected property "

_NONE: Final = "matches none of the allowed forms"
_BLUNT: Final = "has a form that is not allowed"

_SENTENCES: dict[str, Callable[[Any], str]] = {
    "AdditionalItems": lambda kind: f"has more than {_count(kind.limit, 'item')}",
    "AdditionalProperties": lambda kind: f"{UNEXPECTED}{_named(kind.unexpected)}",
    "BacktrackLimitExceeded": lambda kind: "too costly to match against its pattern; shorten it",
    "Constant": lambda kind: f"must be {_listed([kind.expected_value])}",
    "Contains": lambda kind: "holds too few or too many items of the required form",
    "ContentEncoding": lambda kind: f"is not {kind.content_encoding} encoded",
    "ContentMediaType": lambda kind: f"does not hold {kind.content_media_type}",
    "Enum": lambda kind: f"must be one of {_listed(kind.options)}",
    "ExclusiveMaximum": lambda kind: f"must be below {kind.limit}",
    "ExclusiveMinimum": lambda kind: f"must be above {kind.limit}",
    "FalseSchema": lambda kind: "must not be present",
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
    "Not": lambda kind: _BLUNT,
    "OneOfMultipleValid": lambda kind: "matches more than one of the allowed forms",
    "Pattern": lambda kind: f"does not match the pattern {shorten(kind.pattern)}",
    "PropertyNames": lambda kind: f"property name {shorten(str(kind.error.instance))} is not allowed",
    "Required": lambda kind: f"missing property {shorten(kind.property)}",
    "Type": lambda kind: f"expected {' or '.join(kind.types)}",
    "UnevaluatedItems": lambda kind: "has items that are not allowed",
    "UnevaluatedProperties": lambda kind: f"{UNEXPECTED}{_named(kind.unexpected)}",
    "UniqueItems": lambda kind: "has the same item twice",
}


# A value that matches no branch of a union; the library keeps the errors of each branch.
_UNIONS: Final = ("AnyOf", "OneOfNotValid")

# With more forms, or deeper nested unions, the message would be too long to read.
_MAX_FORMS: Final = 4
_MAX_UNIONS: Final = 2

# Among more forms, none is looked for that comes closest.
_MAX_BRANCHES: Final = 50

# The errors of the closest form that one message tells.
_MAX_TOLD: Final = 3


def tell(error: Any, unions: int = 0) -> tuple[Any, str]:
    """Return the error whose place to report, and its message.

    Where each branch of a union has one error, all at the same place, that place is reported. It may be
    further down, for example the name of a variant. Otherwise the branch that comes closest is told.
    """
    kind = error.kind
    if type(kind).__name__ not in _UNIONS:
        return error, words(kind)
    branches: list[list[Any]] = kind.context if unions < _MAX_UNIONS else []
    if 0 < len(branches) <= _MAX_FORMS and all(len(errors) == 1 for errors in branches):
        told = [tell(errors[0], unions + 1) for errors in branches]
        places = {tuple(below.instance_path) for below, _ in told}
        if len(places) == 1 and {sentence for _, sentence in told} != {_BLUNT}:
            first, *rest = dict.fromkeys(sentence for _, sentence in told)
            return told[0][0], " or ".join([first, *(each.removeprefix("expected ") for each in rest)])
    return (_closest(error, branches, unions) if len(branches) <= _MAX_BRANCHES else None) or (error, _NONE)


def _closest(union: Any, branches: list[list[Any]], unions: int) -> tuple[Any, str] | None:
    """Return what to tell of the branch that a value comes closest to, or None where there is no such one.

    1. Branches for a different type, or for a different value as a whole, are out.
    2. Where all others list values for one property, and none of these is there, that property is told.
    3. Otherwise it is the branch with the fewest errors about listed values, then with the fewest errors:
       a property with a listed value tells the variants of a union apart.
    """
    depth = len(union.instance_path)
    near = [(at, errors) for at, errors in enumerate(branches) if not _is_of_other_kind(errors, depth)]
    listed = [_listed_by_place(errors) for _, errors in near]
    shared = set(listed[0]).intersection(*listed[1:]) if len(near) > 1 else set[tuple[str | int, ...]]()
    if shared:
        place = min(shared, key=whole_pointer)
        values = [value for each in listed for value in _values_of(each[place].kind)]
        return listed[0][place], f"must be one of {_listed(values)}"
    ranks = sorted((len(listed[at]), len(errors), at) for at, (_, errors) in enumerate(near))
    if not ranks or (len(ranks) > 1 and ranks[0][:2] == ranks[1][:2]):
        return None
    at, errors = near[ranks[0][2]]
    name = _name_of_branch(union, errors) or f"number {at + 1}"
    if len(errors) == 1:
        there, sentence = tell(errors[0], unions + 1)
        return there, f"{sentence} (closest of the {len(branches)} allowed forms: {name})"
    told = sorted({_placed_sentence(each, depth, unions) for each in errors})
    more = f" and {len(told) - _MAX_TOLD} more" if len(told) > _MAX_TOLD else ""
    return union, f"{_NONE}; closest is {name}: {'; '.join(told[:_MAX_TOLD])}{more}"


def _is_of_other_kind(errors: list[Any], depth: int) -> bool:
    kinds = ("Type", "FalseSchema", "Constant", "Enum")
    return any(len(each.instance_path) == depth and type(each.kind).__name__ in kinds for each in errors)


def _listed_by_place(errors: list[Any]) -> dict[tuple[str | int, ...], Any]:
    """Return the errors about listed values, by their places."""
    return {
        tuple(each.instance_path): each for each in errors if type(each.kind).__name__ in ("Constant", "Enum")
    }


def _values_of(kind: Any) -> list[Any]:
    return list(kind.options) if type(kind).__name__ == "Enum" else [kind.expected_value]


def _name_of_branch(union: Any, errors: list[Any]) -> str | None:
    """Return the name of the definition that a branch refers to, or None where it is written in place."""
    step = len(union.evaluation_path) + 1
    names = {
        str(each.schema_path[1])
        if each.schema_path[0] in ("$defs", "definitions") and each.evaluation_path[step] == "$ref"
        else None
        for each in errors
    }
    name = names.pop()
    return None if names or name is None else shorten(name)


def _placed_sentence(error: Any, depth: int, unions: int) -> str:
    """Return the message of an error, with its place below the union."""
    there, sentence = tell(error, unions + 1)
    below = escape_pointer(there.instance_path[depth:])
    return f"{below}: {sentence}" if below else sentence


def words(kind: object) -> str:
    """Return the message for one kind of violation, except of a union."""
    sentence = _SENTENCES.get(type(kind).__name__)
    return sentence(kind) if sentence else "breaks the schema"
