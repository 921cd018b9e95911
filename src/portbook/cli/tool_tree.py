"""The tools as a tree: by where they come from, then by tag. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from portbook.escaping import escaped
from portbook.tools.catalog import Tool

__all__ = ["SourceBranch", "tree_in_words", "tree_of"]

_FUNCTIONS = "functions"
_NO_TAG = "(no tag)"


@dataclass(frozen=True, slots=True)
class SourceBranch:
    """The tools of one API, or those that are functions."""

    source: str
    """`http.NAME` for the API of `[http.NAME]`."""
    count: int
    tags: dict[str | None, list[Tool]]
    """Its tools by tag; a tool with several tags is under each of them, and one without tags under None."""

    def as_data(self) -> dict[str, object]:
        """Return it as JSON."""
        groups = [
            {"tag": tag, "tools": [tool.spec.name for tool in tools]} for tag, tools in self.tags.items()
        ]
        return {"source": self.source, "count": self.count, "tags": groups}


def tree_of(tools: Iterable[Tool]) -> list[SourceBranch]:
    """Return the tools, grouped; sources and tags are in order, what has no tag comes last."""
    by_source: dict[str, list[Tool]] = {}
    for tool in tools:
        operation = tool.spec.operation
        by_source.setdefault(_FUNCTIONS if operation is None else f"http.{operation.gateway}", []).append(
            tool
        )
    return [_branch(source, found) for source, found in sorted(by_source.items())]


def _branch(source: str, tools: list[Tool]) -> SourceBranch:
    groups: dict[str | None, list[Tool]] = {}
    for tag in sorted({tag for tool in tools for tag in tool.spec.tags}):
        groups[tag] = [tool for tool in tools if tag in tool.spec.tags]
    untagged = [tool for tool in tools if not tool.spec.tags]
    return SourceBranch(source, len(tools), {**groups, None: untagged} if untagged else groups)


def tree_in_words(branches: Iterable[SourceBranch]) -> Iterator[str]:
    """Yield the lines of the tree; where nothing has a tag, tools are directly under their source."""
    for branch in branches:
        yield f"{escaped(branch.source)}: {_counted(branch.count)}"
        for tag, tools in branch.tags.items():
            indent = "  " if branch.tags.keys() == {None} else "    "
            if indent == "    ":
                yield f"  {_NO_TAG if tag is None else escaped(tag)}: {_counted(len(tools))}"
            for tool in tools:
                mark = ", deprecated" if tool.spec.is_deprecated else ""
                yield f"{indent}{escaped(tool.spec.name)} ({tool.spec.effect}{mark})"


def _counted(count: int) -> str:
    return "1 tool" if count == 1 else f"{count} tools"
