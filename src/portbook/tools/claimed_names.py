"""Names that several entries claim: which entries of MCP servers are not served for that. Pure: no I/O.

Two of the operator's own tools with one name are a mistake, which stops the start.

Entries of MCP servers come and go while Portbook serves. None of them may take a name over, or a call could
mean one tool today and a different one tomorrow: of several claimants, none is served. A name of the
operator's own tools stays theirs, so that no server can take one of them away. So does the folder of a skill:
no one else can put a file into it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Protocol

from portbook.model import Kind
from portbook.tools.spec import SKILL_SCHEME, BadTool, ToolSpec

__all__ = ["Named", "claims_of", "refused_claims", "require_apart"]

Claim = tuple[Kind, str]

# The source of the operator's own entries; no server has this alias.
_OWN: Final = ""


class Named(Protocol):
    """An entry of the catalog, as far as its names go."""

    @property
    def spec(self) -> ToolSpec:
        """Return its spec."""
        ...

    @property
    def listed(self) -> str:
        """Return its name in MCP listings."""
        ...


def claims_of(entry: Named) -> set[Claim]:
    """Return the names under which an entry can be called: of a tool, three that may be the same."""
    spec = entry.spec
    if spec.kind != "tool":
        return {(spec.kind, spec.name)}
    return {("tool", name) for name in (spec.name, entry.listed, spec.declared)}


def require_apart(tools: Iterable[Named]) -> None:
    """Raise `BadTool` where two tools would have the same name: a call must not mean one or the other."""
    found: dict[str, Named] = {}
    for tool in tools:
        for name in (tool.spec.name, tool.listed, tool.spec.declared):
            other = found.setdefault(name, tool)
            if other is not tool:
                raise BadTool(
                    f"tools {other.spec.declared!r} and {tool.spec.declared!r} would both be {name!r} for "
                    'MCP clients; rename one, or set server.tool_names to "canonical"'
                )


def refused_claims(own: Iterable[Named], offered: Sequence[tuple[str, Named]]) -> dict[int, str]:
    """Return why entries are not served, by their index in `offered`, which has the source of each."""
    everything = [*((_OWN, entry) for entry in own), *offered]
    claimants: defaultdict[Claim, list[str]] = defaultdict(list)
    folders: defaultdict[str, set[str]] = defaultdict(set)
    for source, entry in everything:
        for claim in claims_of(entry):
            claimants[claim].append(source)
        if entry.spec.skill is not None:
            folders[entry.spec.name.rpartition("/")[0]].add(source)
    refused: dict[int, str] = {}
    for index, (source, entry) in enumerate(offered):
        others = max((claimants[claim] for claim in claims_of(entry)), key=len)
        owners = {owner for folder in _folders_around(entry.spec, folders) for owner in folders[folder]}
        if len(others) > 1:
            refused[index] = _words_of(source, others, entry.spec.kind)
        elif owners - {source}:
            refused[index] = f"its address is in the folder of a skill of {_named(min(owners - {source}))}"
    return refused


def _folders_around(spec: ToolSpec, folders: Mapping[str, object]) -> Iterator[str]:
    """Yield those of the `folders` that a resource is in; a template, those that it could be in."""
    if spec.kind != "resource" or not folders:
        return
    literal, brace, _ = spec.name.partition("{")
    if brace:
        yield from (each for each in folders if f"{each}/".startswith(literal))
    if literal.startswith(SKILL_SCHEME):
        end = len(SKILL_SCHEME)
        while (end := literal.find("/", end)) > 0:
            if literal[:end] in folders:
                yield literal[:end]
            end += 1


def _words_of(source: str, claimants: list[str], kind: Kind) -> str:
    others = sorted({each for each in claimants if each != source})
    if not others:
        return "the server has two entries of this name"
    # A resource has the same address, whatever its server is called.
    remedy = "set prefix, or leave it out with tools" if kind == "tool" else "leave one of the servers out"
    if _OWN in others:
        return f"{_named(_OWN)} have this name, and keep it; {remedy}"
    named = " and ".join(_named(each) for each in others)
    return f"{named} has the same name, so neither is served; {remedy}"


def _named(source: str) -> str:
    return f"mcp.{source}" if source else "your own tools"
