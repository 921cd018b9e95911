"""What is served, each with its compiled contract. Built once, then only read. Pure: no I/O.

Tools are found by their name, prompts too; resources by their URI, or by the template that it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from portbook.canonical import fingerprint
from portbook.model import JSONObject, Kind
from portbook.protocol.headers import BadMark, marked_params
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema, Validator
from portbook.tools.spec import BadTool, ToolSpec, named_by, require_slug
from portbook.tools.uri_templates import UriTemplate

__all__ = ["Catalog", "Tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is served."""

    spec: ToolSpec
    input: Validator
    output: Validator
    digest: str
    """Changes when what the tool is does: what an approval is bound to."""


# How authors declare one, for messages.
_DECORATORS: Final[dict[Kind, str]] = {
    "tool": "@toolset.tool(name=...)",
    "resource": "@toolset.resource(uri)",
    "prompt": "@toolset.prompt(name=...)",
    "completion": "complete=...",
}


class Catalog:
    """Finds what is called by its name, exactly: no folding of case, no guessing."""

    __slots__ = ("_served", "_templates", "_tools")

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        """Compile every contract.

        Raises `BadTool` for a name that is taken or impossible, or a schema that does not compile or that
        marks what no header can hold.
        """
        self._served: dict[tuple[Kind, str], Tool] = {}
        for spec in specs:
            if spec.kind == "tool":
                require_slug(spec.name)
                _require_marks(spec)
            if (spec.kind, spec.name) in self._served:
                raise BadTool(
                    f"{spec.kind} {spec.name!r} is declared twice; rename one with {_DECORATORS[spec.kind]}"
                )
            self._served[spec.kind, spec.name] = Tool(
                spec,
                _compiled(spec, "input", spec.input_schema),
                _compiled(spec, "output", spec.output_schema),
                fingerprint(spec.definition()),
            )
        self._tools = {name: tool for (kind, name), tool in self._served.items() if kind == "tool"}
        self._templates = [
            (UriTemplate(name), tool)
            for (kind, name), tool in sorted(self._served.items())
            if kind == "resource" and UriTemplate.is_one(name)
        ]

    def find(self, name: str, kind: Kind = "tool") -> Tool | None:
        """Return the tool of this name, or what else of that `kind` is called so; None where nothing is."""
        tool = self._tools.get(name) if kind == "tool" else self._served.get((kind, name))
        return tool if tool is None or tool.spec.is_on else None

    def locate(self, uri: str) -> tuple[str, JSONObject] | None:
        """Return the name of the resource that `uri` is of, and what its template takes from it."""
        if ("resource", uri) in self._served and not UriTemplate.is_one(uri):
            return uri, {}
        for template, tool in self._templates:
            found = template.match(uri)
            if found is not None:
                return tool.spec.name, dict(found)
        return None

    def named(self, identifier: str) -> tuple[Tool, JSONObject] | None:
        """Return what records call so, or the tool of this name, and what its template takes from a URI."""
        kind, name = named_by(identifier)
        taken: JSONObject = {}
        if kind == "resource" and (located := self.locate(name)) is not None:
            name, taken = located
        tool = self.find(name, kind)
        return None if tool is None else (tool, taken)

    def of(self, kind: Kind) -> list[Tool]:
        """Return all of a kind that are on, ordered by name."""
        return sorted(
            (tool for (its, _), tool in self._served.items() if its == kind and tool.spec.is_on),
            key=lambda tool: tool.spec.name,
        )

    def specs(self) -> Iterator[ToolSpec]:
        """Iterate over all that is declared, of every kind, on or off."""
        return (tool.spec for tool in self._served.values())

    def has(self, kind: Kind) -> bool:
        """Return whether there is anything of a kind, on or off."""
        return any(its == kind for its, _ in self._served)

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over the tools, ordered by name."""
        return iter(self.of("tool"))

    def __len__(self) -> int:
        return len(self._tools)


def _require_marks(spec: ToolSpec) -> None:
    try:
        marked_params(spec.input_schema)
    except BadMark as error:  # clients would leave the tool out, and nobody would know why
        raise BadTool(f"tool {spec.name!r}, input schema: {error}") from None


def _compiled(spec: ToolSpec, side: str, schema: object) -> Validator:
    try:
        return validator_for(schema)
    except BadSchema as error:
        raise BadTool(f"{spec.kind} {spec.name!r}, {side} schema: {error}") from None
