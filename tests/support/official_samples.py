"""Messages made from the official schemas: valid ones, and ways to break them."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from typing import Any

from portbook.schema.official_schemas import SchemaStore

STORE = SchemaStore()

# One value for each format that the schemas use.
_FORMATS = {
    "uri": "https://example.org/a",
    "uri-template": "https://example.org/{id}",
    "byte": "aGk=",
    "email": "a@b.c",
}


def definitions(revision: str) -> dict[str, Any]:
    document: Any = STORE.document(revision)
    return document.get("$defs") or document["definitions"]


def sample(revision: str, name: str, seed: int) -> Any:
    """A valid instance of a definition; other seeds choose other branches and optional parts."""
    return _Maker(definitions(revision), random.Random(seed)).make({"$ref": f"#/x/{name}"}, 0)


class _Maker:
    def __init__(self, known: dict[str, Any], chance: random.Random) -> None:
        self.known = known
        self.chance = chance

    def make(self, schema: Any, depth: int) -> Any:
        if "$ref" in schema:
            return self.make(self.known[schema["$ref"].rsplit("/", 1)[1]], depth)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return self.chance.choice(schema["enum"])
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                branches = schema[choice] if depth < 6 else schema[choice][-1:]
                return self.make(self.chance.choice(branches), depth + 1)
        if "allOf" in schema:
            merged: Any = {}
            for part in schema["allOf"]:
                merged |= self.make(part, depth + 1)
            return merged
        kind = schema.get("type", "object" if "properties" in schema else "string")
        return self._typed(schema, self.chance.choice(kind) if isinstance(kind, list) else kind, depth)

    def _typed(self, schema: Any, kind: str, depth: int) -> Any:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            count = 0 if depth > 6 else self.chance.randint(schema.get("minItems", 0), 2)
            return [self.make(schema.get("items", {}), depth + 1) for _ in range(count)]
        if kind == "string":
            return _FORMATS.get(schema.get("format", ""), self.chance.choice(["", "text", "ümlaut"]))
        low = schema.get("minimum", 0)
        plain = {
            "integer": low,
            "number": low + 0.5 if schema.get("maximum", 9) > low else low,
            "boolean": True,
        }
        return plain.get(kind)

    def _object(self, schema: Any, depth: int) -> Any:
        required = set(schema.get("required", ()))
        made = {
            name: self.make(part, depth + 1)
            for name, part in schema.get("properties", {}).items()
            if name in required or (depth < 5 and self.chance.random() < 0.4)
        }
        more = schema.get("additionalProperties")
        if isinstance(more, dict) and depth < 5 and self.chance.random() < 0.3:
            made["unforeseen"] = self.make(more, depth + 1) if more else 1
        return made


def broken(message: Any, chance: random.Random, count: int) -> Iterator[Any]:
    """Copies of `message`, each with one part taken out or made something else."""
    places = list(_places(message, ()))
    for _ in range(count):
        path = chance.choice(places)
        changed = copy.deepcopy(message)
        holder: Any = changed
        for step in path[:-1]:
            holder = holder[step]
        if not path:
            yield chance.choice([None, [], "x", 5, {}])
        elif chance.random() < 0.4:
            del holder[path[-1]]
            yield changed
        else:
            holder[path[-1]] = chance.choice([None, True, 5, -1.5, "x", [], {}, ["x"], {"x": 1}])
            yield changed


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    yield path
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, child in children:
        yield from _places(child, (*path, key))
