"""`inlined_references`: a schema for a form, with every `$ref` replaced by what it names. Pure: no I/O.

What stands beside a reference wins over what it names. That is right for titles, descriptions and defaults,
and near enough for the rest: values are checked by the schema itself, never by this one.
"""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import Path, dialect_of
from portbook.schema.references import Document

__all__ = ["inlined_references"]

# Beyond them, references stay as they are: nobody fills in such a form, and few references can name much.
_MOST_SCHEMAS: Final = 5000
_DEEPEST: Final = 60

# Their values are data, in which a `$ref` is no reference.
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED: Final = frozenset({"$defs", "definitions"})


def inlined_references(schema: JSONObject) -> JSONObject:
    """Return a valid schema without its references, but for those that lead back to themselves."""
    document = Document(schema, dialect_of(schema))
    document.resolve()
    return cast("JSONObject", _Inliner(document).at((), schema, frozenset({()}), 0))


class _Inliner:
    def __init__(self, document: Document) -> None:
        self._nodes = document.nodes
        self._left = _MOST_SCHEMAS

    def at(self, path: Path, value: Any, above: frozenset[Path], depth: int) -> Any:
        """Return what stands at a path; `above` are the targets that lead here."""
        if depth > _DEEPEST:
            return value
        if isinstance(value, list):
            items = cast("list[JSON]", value)
            return [self.at((*path, at), item, above, depth + 1) for at, item in enumerate(items)]
        if not isinstance(value, dict):
            return value
        self._left -= 1
        is_schema = path in self._nodes  # otherwise its members are arguments, of whatever name
        members: dict[str, Any] = {
            name: each if is_schema and name in _DATA else self.at((*path, name), each, above, depth + 1)
            for name, each in cast("JSONObject", value).items()
            if not (is_schema and name in _NAMED)
        }
        target = self._target(path, members)
        if target is None or target in above or self._left <= 0:
            return members
        named = self.at(target, self._nodes[target].schema, above | {target}, depth + 1)
        del members["$ref"]
        return {**cast("JSONObject", named), **members} if isinstance(named, dict) else named

    def _target(self, path: Path, members: dict[str, Any]) -> Path | None:
        node = self._nodes.get(path)
        return node.targets[0] if node is not None and node.targets and "$ref" in members else None
