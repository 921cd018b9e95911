"""The tools that are served, each with its compiled contract. Built once, then only read. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from portbook.canonical import fingerprint
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema, Validator
from portbook.tools.spec import BadTool, ToolSpec, require_slug

__all__ = ["Catalog", "Tool"]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that is served."""

    spec: ToolSpec
    input: Validator
    output: Validator
    digest: str
    """Changes when what the tool is does: what an approval is bound to."""


class Catalog:
    """Finds a tool by its name, exactly: no folding of case, no guessing."""

    __slots__ = ("_tools",)

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        """Compile every contract.

        Raises `BadTool` for a name that is taken or impossible, or a schema that does not compile.
        """
        self._tools: dict[str, Tool] = {}
        for spec in specs:
            require_slug(spec.name)
            if spec.name in self._tools:
                raise BadTool(
                    f"tool {spec.name!r} is declared twice; rename one with @toolset.tool(name=...)"
                )
            self._tools[spec.name] = Tool(
                spec,
                _compiled(spec, "input", spec.input_schema),
                _compiled(spec, "output", spec.output_schema),
                fingerprint(spec.definition()),
            )

    def find(self, name: str) -> Tool | None:
        """Return the tool of this name, or None."""
        return self._tools.get(name)

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over the tools, ordered by name."""
        return iter(sorted(self._tools.values(), key=lambda tool: tool.spec.name))

    def __len__(self) -> int:
        return len(self._tools)


def _compiled(spec: ToolSpec, side: str, schema: object) -> Validator:
    try:
        return validator_for(schema)
    except BadSchema as error:
        raise BadTool(f"tool {spec.name!r}, {side} schema: {error}") from None
