"""The value that a tool will see at a place in its arguments, defaults included. Pure: no I/O.

A caller may leave out an argument, or a part of one. The tool then sees the default in its schema: of the
argument itself, or of the object that holds it. Schemas made from Python types keep the parts of a model
behind references; references within the document are followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject

__all__ = ["Gap", "find"]

# How many references and compositions are followed for one place; deeper ones are not.
_MAX_NODES: Final = 64


class Gap(Enum):
    """Why there is no value at a place."""

    UNTOLD = "the tool may fill in a default that its schema does not name"
    EMPTY = "the tool has no such place, or refuses a call without it"


def find(arguments: JSONObject, schema: JSONObject, segments: tuple[str, ...]) -> JSON | Gap:
    """Return the value at `segments`, or its default, or why there is neither."""
    value: JSON | Gap = arguments
    nodes = [*_nodes(schema, schema)]
    for segment in segments:
        is_required = any(segment in _texts(node.get("required")) for node in nodes)
        children = [child for node in nodes if (child := _property(node, segment)) is not None]
        nodes = [node for child in children for node in _nodes(child, schema)]
        if not isinstance(value, dict | list | Gap):
            return Gap.UNTOLD  # a part of a value that has no parts: unknown what the tool makes of it
        value = _step(value, segment)
        if isinstance(value, Gap):
            value = _default(nodes, is_known=bool(children), is_required=is_required)
    return value


def _step(value: JSON | Gap, segment: str) -> JSON | Gap:
    if isinstance(value, dict):
        return value.get(segment, Gap.EMPTY)
    if isinstance(value, list):
        is_index = segment.isdecimal() and len(segment) < 10
        return value[int(segment)] if is_index and int(segment) < len(value) else Gap.EMPTY
    return Gap.EMPTY


def _default(nodes: list[JSONObject], *, is_known: bool, is_required: bool) -> JSON | Gap:
    for node in nodes:
        if "default" in node:
            return node["default"]
    return Gap.UNTOLD if is_known and not is_required else Gap.EMPTY


def _property(node: JSONObject, segment: str) -> Any:
    properties = node.get("properties")
    return cast("JSONObject", properties).get(segment) if isinstance(properties, dict) else None


def _nodes(schema: Any, root: JSONObject) -> Iterator[JSONObject]:
    """Yield a schema and those that apply with it: behind its reference, and in its compositions."""
    waiting: list[Any] = [schema]
    for _ in range(_MAX_NODES):
        if not waiting:
            return
        node = waiting.pop(0)
        if not isinstance(node, dict):
            continue
        node = cast("JSONObject", node)
        yield node
        waiting.extend(
            part
            for keyword in ("allOf", "anyOf", "oneOf")
            for part in cast("list[Any]", node.get(keyword, []))
        )
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#"):
            waiting.append(_at(root, reference))


def _at(root: JSONObject, reference: str) -> Any:
    value: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _texts(value: JSON) -> list[str]:
    return cast("list[str]", value) if isinstance(value, list) else []
