"""Resolves the references of a schema without fetching: every one ends inside the document.

The dialect's own meta-schema is the one exception. Iterative throughout, so that no schema can exhaust the
stack. Pure: no I/O.

- `bundle`: several documents as one, so that references between files resolve. The engine compiles one
  document whose references stay inside it. A document that a schema refers to by name is put under its
  `$defs` as a resource of that name, and so are the documents it refers to.
- `inlined_references`: a schema for a form, with every `$ref` replaced by what it names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import unquote, urldefrag, urljoin

from portbook.errors import Finding
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import (
    DIALECT,
    DRAFT_07,
    META_SCHEMAS,
    Path,
    check_dialect,
    dialect_of,
)
from portbook.schema.violation_wording import escape_pointer
from portbook.text.late_pattern import late_pattern

__all__ = ["REPEATS", "Document", "Path", "bundle", "inlined_references", "subschemas_of"]

# The factor by which `unevaluated…` multiplies the evaluations of the subschemas beside it: the library
# evaluates them again to find what they covered. Measured.
REPEATS: Final = 3

# Keywords whose subschemas apply to the same instance, and those whose subschemas apply to a part of it.
_SAME_ONE = frozenset({"not", "if", "then", "else"})
_SAME_LIST = frozenset({"allOf", "anyOf", "oneOf"})
_SAME_MAP = frozenset({"dependentSchemas"})
_PART_ONE = frozenset(
    {
        "additionalProperties", "items", "contains", "propertyNames", "unevaluatedItems",
        "unevaluatedProperties", "contentSchema",
    }
)  # fmt: skip
_PART_LIST = frozenset({"prefixItems"})
_PART_MAP = frozenset({"properties", "patternProperties"})
_UNUSED_MAP = frozenset({"$defs", "definitions"})

# Keywords that only draft-07 has, each with the keyword of 2020-12 whose subschemas apply in the same way.
_READ_AS: Final = {"dependencies": "dependentSchemas", "additionalItems": "items"}

# The index of an item; bounded, because Python refuses to parse numbers of very many digits.
_INDEX = late_pattern(r"[0-9]{1,18}", re.ASCII)


@dataclass(slots=True, eq=False, repr=False)
class SchemaNode:
    """One subschema: its path, and the subschemas it leads to."""

    path: Path
    schema: Any
    base: str
    same: list[Path] = field(default_factory=list[Path])
    parts: list[Path] = field(default_factory=list[Path])
    refs: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    targets: list[Path] = field(default_factory=list[Path])
    """The targets of its references, once resolved; they are also in `same`."""

    @property
    def steps(self) -> list[Path]:
        """Return the subschemas it leads to, on the same value and on parts of it."""
        return [*self.same, *self.parts]

    @property
    def repeats(self) -> int:
        """Return how often its subschemas on the same value are evaluated."""
        is_dict = isinstance(self.schema, dict)
        is_repeated = is_dict and (
            "unevaluatedProperties" in self.schema or "unevaluatedItems" in self.schema
        )
        return REPEATS if is_repeated else 1


def subschemas_of(schema: dict[str, Any]) -> Iterator[tuple[str, bool, Any]]:
    """Yield the subschemas of a schema in 2020-12, without those that only references reach.

    Each comes with its keyword, and with whether it applies to the same value as the schema itself.
    """
    for keyword, value in schema.items():
        if keyword in _SAME_ONE or keyword in _PART_ONE:
            yield keyword, keyword in _SAME_ONE, value
        elif keyword in _SAME_LIST or keyword in _PART_LIST:
            yield from ((keyword, keyword in _SAME_LIST, item) for item in value)
        elif keyword in _SAME_MAP or keyword in _PART_MAP:
            yield from ((keyword, keyword in _SAME_MAP, item) for item in value.values())


class Document:
    """A schema document split into its subschemas."""

    def __init__(self, schema: Any, dialect: str = DIALECT) -> None:
        self.root = schema
        self.dialect = dialect
        self.nodes: dict[Path, SchemaNode] = {}
        self.resources: dict[str, Path] = {"": ()}
        self.anchors: dict[tuple[str, str], Path] = {}
        self._add(SchemaNode((), schema, ""))

    def _add(self, first: SchemaNode) -> list[SchemaNode]:
        """Add a subschema and all below it; return the new ones."""
        added: list[SchemaNode] = []
        pending = [first]
        while pending:
            node = pending.pop()
            if node.path in self.nodes:
                continue
            self.nodes[node.path] = node
            added.append(node)
            if isinstance(node.schema, dict):
                self._register(node)
                pending.extend(self._children(node))
        return added

    def _register(self, node: SchemaNode) -> None:
        identifier = node.schema.get("$id")
        if isinstance(identifier, str) and identifier.startswith("#") and self.dialect == DRAFT_07:
            self.anchors[node.base, identifier[1:]] = node.path
        elif isinstance(identifier, str):
            node.base = urldefrag(_join(node.base, identifier)).url
            self.resources[node.base] = node.path
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = node.schema.get(keyword)
            if isinstance(anchor, str):
                self.anchors[node.base, anchor] = node.path
        for keyword in ("$ref", "$dynamicRef"):
            reference = node.schema.get(keyword)
            if isinstance(reference, str):
                node.refs.append((keyword, reference))

    def _children(self, node: SchemaNode) -> Iterator[SchemaNode]:
        for name, value in node.schema.items():
            keyword = self._read_as(name, value)
            if keyword in _SAME_ONE or keyword in _PART_ONE:
                found: list[tuple[Path, Any]] = [((*node.path, name), value)]
            elif (keyword in _SAME_LIST or keyword in _PART_LIST) and isinstance(value, list):
                found = [((*node.path, name, at), item) for at, item in enumerate(value)]  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType] # schemas are Any
            elif keyword in _SAME_MAP | _PART_MAP | _UNUSED_MAP and isinstance(value, dict):
                found = [((*node.path, name, key), item) for key, item in value.items()]  # pyright: ignore[reportUnknownVariableType] # schemas are Any
            else:
                continue
            paths = [path for path, _ in found]
            if keyword in _SAME_ONE | _SAME_LIST | _SAME_MAP:
                node.same.extend(paths)
            elif keyword not in _UNUSED_MAP:
                node.parts.extend(paths)
            for path, item in found:
                yield SchemaNode(path, item, node.base)

    def _read_as(self, keyword: str, value: Any) -> str:
        """Return the keyword of 2020-12 whose subschemas apply in the same way as those of `keyword`."""
        if self.dialect != DRAFT_07:
            return keyword
        return (
            "prefixItems"
            if keyword == "items" and isinstance(value, list)
            else _READ_AS.get(keyword, keyword)
        )

    def resolve(self) -> list[Finding]:
        """Resolve every reference to its target; return findings for those that have none."""
        findings: list[Finding] = []
        waiting = list(self.nodes.values())
        while waiting:
            node = waiting.pop()
            findings.extend(check_dialect(node.schema, node.path, self.dialect))
            for keyword, reference in node.refs:
                address = _join(node.base, reference)
                target = self._target(address)
                if target is None and urldefrag(address).url in META_SCHEMAS:
                    continue
                if target is None:
                    is_here = urldefrag(address).url in self.resources
                    findings.append(_dangling((*node.path, keyword), reference, address, is_here=is_here))
                    continue
                waiting.extend(self._add(target))
                node.same.append(target.path)
                node.targets.append(target.path)
        return findings

    def outside(self) -> Iterator[tuple[Path, str]]:
        """Yield the references to other documents: the path of each, and its address."""
        for node in self.nodes.values():
            for keyword, reference in node.refs:
                address = _join(node.base, reference)
                url = urldefrag(address).url
                if url not in self.resources and url not in META_SCHEMAS:
                    yield (*node.path, keyword), address

    def _target(self, address: str) -> SchemaNode | None:
        url, fragment = urldefrag(address)
        start = self.resources.get(url)
        if start is None:
            return None
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            path = self.anchors.get((url, fragment))
            return self.nodes[path] if path is not None else None
        home = self.nodes[start]
        schema, path = home.schema, home.path
        for part in fragment.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            step: str | int = name
            if (
                isinstance(schema, list)
                and _INDEX.fullmatch(name)
                and int(name) < len(cast("list[Any]", schema))
            ):
                step = int(name)
                schema = cast("list[Any]", schema)[step]
            elif isinstance(schema, dict) and name in schema:
                schema = cast("dict[str, Any]", schema)[name]
            else:
                return None
            path = (*path, step)
        return self.nodes.get(path) or SchemaNode(path, schema, home.base)


def _join(base: str, reference: str) -> str:
    if reference.startswith("#"):  # urljoin drops the base where its scheme has no paths, as in urn:
        return base + reference
    try:
        return urljoin(base, reference)
    except ValueError:  # not a URL: resolves to nothing
        return f"unreadable://{reference}"


def _dangling(path: Path, reference: str, address: str, *, is_here: bool) -> Finding:
    """Return the finding for a reference without a target; `is_here` where it names a known document."""
    keyword = str(path[-1])
    if not is_here and ("://" in address or address.startswith("file:")):
        named = escaped(urldefrag(address).url)
        message = f"refers to a different document, {named}, which is never fetched; copy it under $defs"
    else:
        named = escaped(reference if reference.startswith("#") else address)
        message = (
            f"refers to something that is not in this document: there is nothing at {named}; "
            "check its spelling"
        )
    return Finding(escape_pointer(path), message, keyword, "")


# References between documents.


def bundle(schema: Any, find: Callable[[str], Any]) -> Any:
    """Return `schema` with every document that it refers to inside it; `find` returns one by name, or None.

    A reference that is not found stays unchanged: the engine reports it.
    """
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    waiting: list[Any] = [schema]
    while waiting:
        for name in _names(waiting.pop()):
            other = find(name) if name not in found else None
            if isinstance(other, dict):
                found[name] = {**cast("dict[str, Any]", other), "$id": name}
                waiting.append(other)
    document = cast("dict[str, Any]", schema)
    return {**document, "$defs": {**document.get("$defs", {}), **found}} if found else document


def _names(schema: Any) -> list[str]:
    """Return the names of the documents that `schema` refers to, without its own."""
    nodes = Document(schema).nodes.values()
    own = cast("dict[str, Any]", schema).get("$id")
    names = (urldefrag(reference).url for node in nodes for _, reference in node.refs)
    return [name for name in dict.fromkeys(names) if name and name != own]


# References in the schema of a form. What stands beside a reference wins over what it names. That is right
# for titles, descriptions and defaults, and near enough for the rest: values are checked by the schema
# itself, never by this one.

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
