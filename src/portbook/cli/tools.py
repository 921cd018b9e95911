"""`portbook tools`: the tools, resources and prompts that would be served."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import click

from portbook.apis.left_out_operations import LeftOutOperation
from portbook.app.explain_and_dry_run import dry_run
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from, toolsets_argument
from portbook.cli.output_and_errors import claim_stdout, print_data, print_json, say, stop_with
from portbook.escaping import escaped
from portbook.model import Kind
from portbook.tools.catalog import Catalog, Tool

__all__ = ["SourceBranch", "command", "tree_in_words", "tree_of"]

# The tools as a tree: by where they come from, then by tag.

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


_SECTIONS: Final[tuple[tuple[str, Kind], ...]] = (
    ("tools", "tool"),
    ("resources", "resource"),
    ("prompts", "prompt"),
)
# How much of a document's own words a line shows.
_PLACE: Final = 200
_REASON: Final = 400


@click.command("tools")
@toolsets_argument
@json_option("Print JSON with the schemas, even on a terminal.")
@click.option(
    "--left-out",
    "is_left_out",
    is_flag=True,
    help="List the operations of OpenAPI documents that are not served, each with the reason.",
)
@click.option("--tree", "is_tree", is_flag=True, help="Group the tools by where they come from, and by tag.")
@config_option
def command(
    toolsets: tuple[str, ...], *, is_json: bool, is_left_out: bool, is_tree: bool, config: Path | None
) -> None:
    """List the tools, resources and prompts that would be served.

    TOOLSETS are Python files or modules with a Toolset. Where MCP clients list a tool under a different
    name, that name is in parentheses.
    """
    out = claim_stdout()
    try:
        # As for a call: what a server would refuse to serve is refused here, too.
        dry = dry_run(settings_from(config, toolsets=toolsets))
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    for warning in dry.warnings:
        say(f"warning: {warning}")
    catalog, is_data = dry.catalog, is_json or not out.isatty()
    if is_left_out and is_data:
        print_json({"left_out": [each.as_data() for each in dry.left_out]}, out)
    elif is_left_out:
        _print_left_out(dry.left_out, out)
    elif is_tree:
        branches = tree_of(catalog.of("tool"))
        data = {"sources": [branch.as_data() for branch in branches]}
        print_data(data, list(tree_in_words(branches)), out, is_json=is_json)
    elif is_data:
        print_json({section: _as_data(catalog.of(kind)) for section, kind in _SECTIONS}, out)
    else:
        _print_table(catalog, out)


def _as_data(tools: list[Tool]) -> list[dict[str, object]]:
    return [
        {
            "tool": tool.spec.identifier,
            "name": tool.spec.name,
            **_names(tool),
            "description": tool.spec.description,
            "effect": tool.spec.effect.value,
            **_tags(tool),
            "input": tool.spec.input_schema,
            "output": tool.spec.listed_output,
        }
        for tool in tools
    ]


def _names(tool: Tool) -> dict[str, object]:
    """Return the names of a tool beside the canonical one; resources and prompts have one name."""
    return {"listed": tool.listed, "declared": tool.spec.declared} if tool.spec.kind == "tool" else {}


def _tags(tool: Tool) -> dict[str, object]:
    """Return the tags of a tool that has some; operations of APIs also say whether they are deprecated."""
    if tool.spec.operation is None:
        return {"tags": list(tool.spec.tags)} if tool.spec.tags else {}
    return {"tags": list(tool.spec.tags), "deprecated": tool.spec.is_deprecated}


def _shown_name(tool: Tool) -> str:
    name = tool.spec.name
    return name if tool.listed == name else f"{name} ({tool.listed})"


def _print_left_out(left_out: Sequence[LeftOutOperation], out: TextIO) -> None:
    for each in left_out:
        click.echo(f"{click.style(escaped(each.name), bold=True)}  {each.cause}", out)
        click.echo(
            f"  {escaped(f'{each.file}#{each.pointer}', _PLACE)}: {escaped(each.sentence, _REASON)}", out
        )


def _print_table(catalog: Catalog, out: TextIO) -> None:
    served = {section: catalog.of(kind) for section, kind in _SECTIONS}
    has_more = any(served[section] for section, kind in _SECTIONS if kind != "tool")
    width = max((len(_shown_name(tool)) for tools in served.values() for tool in tools), default=0)
    room = max(shutil.get_terminal_size().columns - width - 16, 20)
    for section, tools in served.items():
        if tools and has_more:  # with tools alone no headings are needed
            click.echo(f"{section}:", out)
        for tool in tools:
            shown = escaped(tool.spec.description.partition("\n")[0], room)
            name = click.style(escaped(_shown_name(tool), width).ljust(width), bold=True)
            click.echo(f"{name}  {tool.spec.effect.ljust(11)}  {shown}", out)
