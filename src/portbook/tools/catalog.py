"""`Catalog`: the served tools, resources and prompts with their compiled schemas. Pure: no I/O.

Built once, then only read. Tools are found by canonical name, prompts by name, resources by URI or by a
matching template. An MCP client may call a tool by any of its names; no two tools share one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from portbook.canonical import fingerprint
from portbook.model import JSONObject, Kind
from portbook.protocol.headers import BadMark, marked_params
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema, Validator
from portbook.schema.late_validator import LateValidator
from portbook.tools.spec import BadTool, ToolSpec, named_by, require_slug
from portbook.tools.tool_names import ToolNames, listed_name
from portbook.tools.uri_templates import UriTemplate

__all__ = ["Catalog", "Tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is served."""

    spec: ToolSpec
    input: Validator
    output: Validator
    listed: str
    """The name in MCP listings."""
    outputs_by_status: Mapping[str, Validator] = field(default_factory=dict[str, Validator])
    """Those of `ToolSpec.outputs_by_status`, compiled."""
    _digest: list[str] = field(default_factory=list[str], init=False, repr=False, compare=False)

    @property
    def digest(self) -> str:
        """Return the fingerprint of the tool's definition; approvals are bound to it."""
        if not self._digest:  # on first use: a large document has a thousand tools, and few are called
            self._digest.append(fingerprint(self.spec.definition()))
        return self._digest[0]

    def output_of(self, status: int | None) -> Validator:
        """Return the output schema for an answer of this HTTP status: its own, its range's, or that of all.

        A status that is not described must be what any of the described ones may be.
        """
        found = self.outputs_by_status
        if status is None or not found:
            return self.output
        return found.get(str(status)) or found.get(f"{status // 100}XX") or self.output


# How an author declares each kind, for messages.
_DECORATORS: Final[dict[Kind, str]] = {
    "tool": "@toolset.tool(name=...)",
    "resource": "@toolset.resource(uri)",
    "prompt": "@toolset.prompt(name=...)",
    "completion": "complete=...",
}


class Catalog:
    """Finds tools, resources and prompts by exact name: no case folding, no guessing."""

    __slots__ = ("_served", "_templates", "_tools", "by_any_name")

    def __init__(self, specs: Iterable[ToolSpec], tool_names: ToolNames = "portable") -> None:
        """Compile every schema; `tool_names` are those that MCP clients list.

        Raises `BadTool` for a duplicate or invalid name, for a schema that does not compile, and for one that
        maps a property to a header that cannot hold it.
        """
        is_portable = tool_names == "portable"
        self._served: dict[tuple[Kind, str], Tool] = {}
        for spec in specs:
            if spec.kind == "tool":
                require_slug(spec.name)
                if not spec.are_schemas_checked:
                    _require_marks(spec)
            if (spec.kind, spec.name) in self._served:
                raise BadTool(
                    f"{spec.kind} {spec.declared!r} is declared twice; "
                    f"rename one with {_DECORATORS[spec.kind]}"
                )
            self._served[spec.kind, spec.name] = Tool(
                spec,
                _compiled(spec, "input", spec.input_schema),
                _compiled(spec, "output", spec.output_schema),
                listed_name(spec.declared) if is_portable and spec.kind == "tool" else spec.name,
                {
                    status.upper(): _compiled(spec, "output", schema)
                    for status, schema in spec.outputs_by_status
                },
            )
        self._tools = {name: tool for (kind, name), tool in self._served.items() if kind == "tool"}
        self.by_any_name = _by_any_name(self._tools.values())
        """The tools by their canonical, listed and declared names."""
        self._templates = [
            (UriTemplate(name), tool)
            for (kind, name), tool in sorted(self._served.items())
            if kind == "resource" and UriTemplate.is_one(name)
        ]

    def find(self, name: str, kind: Kind = "tool") -> Tool | None:
        """Return the enabled entry of this `name` and `kind`, or None."""
        tool = self._tools.get(name) if kind == "tool" else self._served.get((kind, name))
        return tool if tool is None or tool.spec.is_on else None

    def canonical_name(self, name: str) -> str | None:
        """Return the canonical name of the tool with this canonical, listed or declared `name`, or None."""
        tool = self.by_any_name.get(name)
        return None if tool is None else tool.spec.name

    def locate(self, uri: str) -> tuple[str, JSONObject] | None:
        """Return the name of the resource at `uri`, and the values of its template's variables, or None."""
        if ("resource", uri) in self._served and not UriTemplate.is_one(uri):
            return uri, {}
        for template, tool in self._templates:
            found = template.match(uri)
            if found is not None:
                return tool.spec.name, dict(found)
        return None

    def named(self, identifier: str) -> tuple[Tool, JSONObject] | None:
        """Return the entry for a record's identifier or a tool's name, and its template's values, or None."""
        kind, name = named_by(identifier)
        taken: JSONObject = {}
        if kind == "resource" and (located := self.locate(name)) is not None:
            name, taken = located
        tool = self.find(name, kind)
        return None if tool is None else (tool, taken)

    def of(self, kind: Kind) -> list[Tool]:
        """Return all enabled entries of a kind, ordered by name."""
        return sorted(
            (tool for (its, _), tool in self._served.items() if its == kind and tool.spec.is_on),
            key=lambda tool: tool.spec.name,
        )

    def specs(self) -> Iterator[ToolSpec]:
        """Iterate over all specs, of every kind, enabled or not."""
        return (tool.spec for tool in self._served.values())

    def has(self, kind: Kind) -> bool:
        """Return whether the catalog has any entry of a kind, enabled or not."""
        return any(its == kind for its, _ in self._served)

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over the tools, ordered by name."""
        return iter(self.of("tool"))

    def __len__(self) -> int:
        return len(self._tools)


def _by_any_name(tools: Iterable[Tool]) -> dict[str, Tool]:
    """Return the tools by each name that an MCP client may call them by.

    Raises `BadTool` where two tools would have the same: a call must not mean one or the other.
    """
    found: dict[str, Tool] = {}
    for tool in tools:
        for name in (tool.spec.name, tool.listed, tool.spec.declared):
            other = found.setdefault(name, tool)
            if other is not tool:
                raise BadTool(
                    f"tools {other.spec.declared!r} and {tool.spec.declared!r} would both be {name!r} for "
                    'MCP clients; rename one, or set server.tool_names to "canonical"'
                )
    return found


def _require_marks(spec: ToolSpec) -> None:
    try:
        marked_params(spec.input_schema)
    except BadMark as error:  # clients would drop the tool without a reason
        raise BadTool(f"tool {spec.name!r}, input schema: {error}") from None


def _compiled(spec: ToolSpec, side: str, schema: object) -> Validator:
    if spec.are_schemas_checked:
        return LateValidator(lambda: validator_for(schema, is_known=True))
    try:
        return validator_for(schema)
    except BadSchema as error:
        raise BadTool(f"{spec.kind} {spec.name!r}, {side} schema: {error}") from None
