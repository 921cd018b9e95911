"""Whether a type takes values only under the names of its schema, at every depth. Pure: no I/O.

Policy decides by the names of the served schema. A field that pydantic also fills from a different name would
let a value past the rule on it. Validation by alias alone (`by_name=False`) excludes the names of aliased
fields; what it cannot exclude is found here, when a tool is declared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

__all__ = ["flaw_of"]

# Members of a core schema that hold values of the author or functions, not schemas.
_NO_SCHEMAS: Final = frozenset({"cls", "config", "default", "expected", "metadata", "ref", "serialization"})

# The nodes that have named fields: the member with the fields, and the member of a field with its alias.
_FIELDS: Final = {
    "model-fields": ("fields", "validation_alias"),
    "typed-dict": ("fields", "validation_alias"),
    "dataclass-args": ("fields", "validation_alias"),
    "arguments": ("arguments_schema", "alias"),
    "arguments-v3": ("arguments_schema", "alias"),
}

_Node = dict[str, Any]


def flaw_of(core_schema: Any) -> str | None:
    """Return why a type would take a value under a name that its schema does not have; None if it does not.

    1. A field has several aliases, or a path as its alias: the schema has one name for it.
    2. A class with its own `__init__` passes the arguments on, and pydantic validates them again as the
       class is configured: by the names of its fields, too.
    """
    nodes = list(_nodes(core_schema))
    for node in nodes:
        for name, alias in _aliases(node):
            if not _is_one_name(alias):
                return (
                    f"{_owner(node)}.{name} has several aliases or a path, and its schema has one name; "
                    "give it one alias: Field(alias=...)"
                )
    own = next((node for node in nodes if node.get("type") == "model" and node.get("custom_init")), None)
    if own is None:
        return None
    for node in nodes:
        if _is_by_name(node) and any(
            alias != name for part in _nodes(node) for name, alias in _aliases(part)
        ):
            return (
                f"{_owner(own)} has its own __init__, so that fields of {_owner(node)} are taken by name, "
                "where the schema has their aliases; drop the __init__, or populate_by_name and "
                "validate_by_name"
            )
    return None


def _nodes(schema: Any) -> Iterator[_Node]:
    """Yield every schema within a core schema; references name one of its definitions."""
    waiting: list[Any] = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            node = cast("_Node", item)
            yield node
            waiting.extend(value for member, value in node.items() if member not in _NO_SCHEMAS)
        elif isinstance(item, list | tuple):
            waiting.extend(cast("list[Any]", item))


def _aliases(node: _Node) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a node, each with its alias, or its name where it has none."""
    members = _FIELDS.get(str(node.get("type")))
    if members is None:
        return
    fields = cast("dict[str, _Node] | list[_Node]", node[members[0]])
    by_name = fields if isinstance(fields, dict) else {str(field["name"]): field for field in fields}
    for name, field in by_name.items():
        yield name, field.get(members[1], name)


def _is_one_name(alias: Any) -> bool:
    # A list is a path; a list of lists is a choice of paths, of which the schema has the first plain name.
    if isinstance(alias, list):
        choices = cast("list[Any]", alias)
        return len(choices) == 1 and isinstance(choices[0], list) and len(cast("list[Any]", choices[0])) == 1
    return True


def _is_by_name(node: _Node) -> bool:
    config = cast("_Node", node.get("config") or {})
    return bool(config.get("validate_by_name") or config.get("populate_by_name"))


def _owner(node: _Node) -> str:
    cls: Any = node.get("cls")
    named = node.get("model_name") or node.get("dataclass_name") or getattr(cls, "__name__", None)
    return str(named or "a function")
