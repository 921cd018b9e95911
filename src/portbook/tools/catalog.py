"""`Catalog`: the served tools, resources and prompts with their compiled schemas. Pure: no I/O.

The operator's own entries are there from the start and stay. What MCP servers offer is replaced, server by
server, when their lists change. Tools are found by canonical name, prompts by name, resources by URI or by a
matching template. An MCP client may call a tool by any of its names; no two tools share one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING, Final, Protocol

from portbook.canonical import NotJSON, digest, fingerprint
from portbook.model import JSON, JSONObject, Kind
from portbook.protocol.mirrored_headers import BadMark, Mark, marked_params
from portbook.schema.engine import BadSchema, LateValidator, Validator, compile_schema, validator_for
from portbook.schema.json_schema_drafts import dialect_of
from portbook.text.named_tuple import NamedTuple
from portbook.text.slotted import slotted
from portbook.tools.spec import SKILL_SCHEME, BadTool, ToolSpec, require_slug
from portbook.tools.tool_names import ToolNames, listed_name, named_by
from portbook.tools.uri_templates import UriTemplate

if TYPE_CHECKING:
    from portbook.tools.upstream_entries import WithheldEntry

__all__ = ["Catalog", "LeftOutEntry", "Named", "Tool", "claims_of", "refused_claims", "require_apart"]


@slotted(eq=False)
class Tool:
    """A tool that is served."""

    spec: ToolSpec
    input: Validator
    output: Validator
    listed: str
    """The name in MCP listings."""
    outputs_by_status: Mapping[str, Validator] = field(default_factory=dict[str, Validator])
    """Those of `ToolSpec.outputs_by_status`, compiled."""
    _digest: list[str] = field(default_factory=list[str], init=False)
    _digests: list[tuple[str | None, str | None, str | None]] = field(
        default_factory=list[tuple[str | None, str | None, str | None]], init=False
    )
    _marks: list[tuple[Mark, ...]] = field(default_factory=list[tuple[Mark, ...]], init=False)

    @property
    def digest(self) -> str:
        """Return the fingerprint of the tool's definition; approvals are bound to it."""
        if not self._digest:  # on first use: a large document has a thousand tools, and few are called
            self._digest.append(fingerprint(self.spec.definition()))
        return self._digest[0]

    @property
    def digests(self) -> tuple[str | None, str | None, str | None]:
        """Return the digests of the definition, the input schema and the output schema, as RFC 8785 has them.

        None for one that has none: a number would be rounded, and no digest is better than a wrong one.
        """
        if not self._digests:
            spec = self.spec
            self._digests.append(
                (_digest(spec.definition()), _digest(spec.input_schema), _digest(spec.output_schema))
            )
        return self._digests[0]

    @property
    def marks(self) -> tuple[Mark, ...]:
        """Return the arguments that clients repeat in headers."""
        if not self._marks:
            self._marks.append(marked_params(self.spec.input_schema))
        return self._marks[0]

    def output_of(self, status: int | None) -> Validator:
        """Return the output schema for an answer of this HTTP status: its own, its range's, or that of all.

        A status that is not described must be what any of the described ones may be.
        """
        found = self.outputs_by_status
        if status is None or not found:
            return self.output
        return found.get(str(status)) or found.get(f"{status // 100}XX") or self.output


class LeftOutEntry(NamedTuple):
    """An entry of an MCP server that is not served, and why."""

    source: str
    """The alias of the server."""
    kind: Kind
    name: str
    """The server's own name of it."""
    why: str


# How an author declares each kind, for messages.
_DECORATORS: Final[dict[Kind, str]] = {
    "tool": "@toolset.tool(name=...)",
    "resource": "@toolset.resource(uri)",
    "prompt": "@toolset.prompt(name=...)",
    "completion": "complete=...",
}


class Catalog:
    """Finds tools, resources and prompts by exact name: no case folding, no guessing."""

    __slots__ = (
        "_expected",
        "_is_portable",
        "_own",
        "_parts",
        "_served",
        "_templates",
        "_tools",
        "_unusable",
        "_withheld",
        "by_any_name",
        "left_out",
    )

    def __init__(
        self,
        specs: Iterable[ToolSpec],
        tool_names: ToolNames = "portable",
        expected: Iterable[Kind] = (),
    ) -> None:
        """Compile every schema; `tool_names` are those that MCP clients list.

        Entries of the `expected` kinds may come later, from MCP servers.

        Raises `BadTool` for a duplicate or invalid name, for a schema that does not compile, and for one that
        maps a property to a header that cannot hold it.
        """
        self._is_portable = tool_names == "portable"
        self._expected = frozenset(expected)
        self._own: dict[tuple[Kind, str], Tool] = {}
        for spec in specs:
            if (spec.kind, spec.name) in self._own:
                raise BadTool(_declared_twice(self._own[spec.kind, spec.name].spec, spec))
            self._own[spec.kind, spec.name] = self._tool_of(spec)
        require_apart(tool for (kind, _), tool in self._own.items() if kind == "tool")
        self.by_any_name: dict[str, Tool] = {}
        """The tools by their canonical, listed and declared names."""
        self._parts: dict[str, list[Tool]] = {}
        self._unusable: dict[str, list[LeftOutEntry]] = {}
        self._withheld: dict[str, tuple[WithheldEntry, ...]] = {}
        self._index()

    def replace(self, source: str, specs: Iterable[ToolSpec], withheld: Iterable[WithheldEntry] = ()) -> None:
        """Serve `specs` in place of all that came from the MCP server `source` before; refuse the `withheld`.

        What cannot be served stops nothing else: `left_out` has it. An entry that is no longer served is
        switched off, so that calls that know it from before find the new one, or none.
        """
        before = {id(tool): tool for tool in self._served.values()}
        known = {(tool.spec.kind, tool.spec.name): tool for tool in self._parts.get(source, ())}
        self._parts[source], self._unusable[source] = [], []
        self._withheld[source] = tuple(withheld)
        for spec in specs:
            same = known.get((spec.kind, spec.name))
            if same is not None and same.spec == replace(spec, switch=same.spec.switch):
                self._parts[source].append(same)  # a call that is on its way to it goes on
                continue
            try:
                self._parts[source].append(self._tool_of(spec))
            except (BadTool, NotJSON) as error:
                self._unusable[source].append(LeftOutEntry(source, spec.kind, _own_name(spec), str(error)))
        self._index()
        kept = {id(tool) for tool in self._served.values()}
        for key, tool in before.items():
            if key not in kept and tool.spec.switch is not None:
                tool.spec.switch.is_replaced = (tool.spec.kind, tool.spec.name) in self._served
                tool.spec.switch.is_on = False
        for tool in self._served.values():
            if tool.spec.switch is not None and tool.spec.upstream is not None:
                tool.spec.switch.is_on = True  # perhaps again: what had its name is gone

    def _index(self) -> None:
        offered = [(source, tool) for source, tools in self._parts.items() for tool in tools]
        refused = refused_claims(self._own.values(), offered)
        left_out = [each for source in self._unusable.values() for each in source]
        self._served = dict(self._own)
        for index, (source, tool) in enumerate(offered):
            if index in refused:
                left_out.append(LeftOutEntry(source, tool.spec.kind, _own_name(tool.spec), refused[index]))
            else:
                self._served[tool.spec.kind, tool.spec.name] = tool
        self.left_out = tuple(left_out)
        """What MCP servers offer and is not served."""
        self._tools = {name: tool for (kind, name), tool in self._served.items() if kind == "tool"}
        self.by_any_name.clear()  # the same dictionary for as long as the catalog is used
        self.by_any_name.update((name, tool) for tool in self._tools.values() for _, name in claims_of(tool))
        templates = [
            (UriTemplate(name), tool)
            for (kind, name), tool in sorted(self._served.items())
            if kind == "resource" and UriTemplate.is_one(name)
        ]
        # The operator's own first: no server takes an address of theirs.
        self._templates = sorted(templates, key=lambda each: each[1].spec.upstream is not None)

    def _tool_of(self, spec: ToolSpec) -> Tool:
        if spec.kind == "tool":
            require_slug(spec.name)
            if not spec.are_schemas_checked:
                _require_marks(spec)
        elif spec.kind == "resource" and UriTemplate.is_one(spec.name):
            UriTemplate(spec.name)  # raises where it cannot be matched
        return Tool(
            spec,
            _compiled(spec, "input", spec.input_schema),
            _compiled(spec, "output", spec.output_schema),
            listed_name(spec.declared) if self._is_portable and spec.kind == "tool" else spec.name,
            {status.upper(): _compiled(spec, "output", schema) for status, schema in spec.outputs_by_status},
        )

    def find(self, name: str, kind: Kind = "tool") -> Tool | None:
        """Return the enabled entry of this `name` and `kind`, or None."""
        tool = self._tools.get(name) if kind == "tool" else self._served.get((kind, name))
        return tool if tool is None or tool.spec.is_on else None

    def serves(self, name: str, kind: Kind) -> bool:
        """Return whether an entry of this `kind` has `name` among its names; a withheld one counts."""
        if kind == "tool":
            return self.canonical_name(name) is not None
        return (kind, name) in self._served or self.withheld_as(name, kind) is not None

    def canonical_name(self, name: str) -> str | None:
        """Return the canonical name of the tool with this canonical, listed or declared `name`, or None."""
        tool = self.by_any_name.get(name)
        if tool is not None:
            return tool.spec.name
        withheld = (each for each in self.withheld() if each.kind == "tool" and name in each.other_names)
        return next((each.name for each in withheld), None)

    def withheld(self) -> Iterator[WithheldEntry]:
        """Iterate over what MCP servers offer, and no client gets until a person approves it."""
        return (each for entries in self._withheld.values() for each in entries)

    def withheld_as(self, name: str, kind: Kind) -> WithheldEntry | None:
        """Return the withheld entry of this `name` and `kind`, or None."""
        return next((each for each in self.withheld() if (each.kind, each.name) == (kind, name)), None)

    def locate(self, uri: str) -> tuple[str, JSONObject] | None:
        """Return the name of the resource at `uri`, and the values of its template's variables, or None.

        An address that templates of two servers match is at neither of them.
        """
        if ("resource", uri) in self._served and not UriTemplate.is_one(uri):
            return uri, {}
        located: tuple[Tool, JSONObject] | None = None
        for template, tool in self._templates:
            found = template.match(uri)
            if found is None:
                continue
            if located is not None and _server_of(located[0]) != _server_of(tool):
                return None
            located = located or (tool, dict(found))
            if _server_of(tool) is None:
                break
        return None if located is None else (located[0].spec.name, located[1])

    def server_of(self, resource: str) -> str | None:
        """Return the alias of the MCP server that offers the resource of this name, or None."""
        found = self._served.get(("resource", resource))
        return None if found is None else _server_of(found)

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
        """Return whether the catalog has any entry of a kind, enabled or not, or may have one later."""
        return kind in self._expected or any(its == kind for its, _ in self._served)

    @property
    def may_grow(self) -> bool:
        """Return whether MCP servers may offer more later."""
        return bool(self._expected)

    @property
    def has_skills(self) -> bool:
        """Return whether Agent Skills are served."""
        return any(tool.spec.skill is not None for tool in self.of("resource"))

    def __iter__(self) -> Iterator[Tool]:
        """Iterate over the tools, ordered by name."""
        return iter(self.of("tool"))

    def __len__(self) -> int:
        return len(self._tools)


def _digest(value: JSON) -> str | None:
    try:
        return digest(value)
    except NotJSON:
        return None


def _declared_twice(first: ToolSpec, second: ToolSpec) -> str:
    """Return what to tell the author, with the places of both where they are functions."""
    from portbook.tools.mistake_place import declared_at  # late: only where there is a mistake

    earlier, later = (None if each.author is None else declared_at(each.author) for each in (first, second))
    place = later or earlier
    also = "" if earlier is None or later is None else f", first at {earlier.partition(': ')[0]}"
    told = f"{second.kind} {second.declared!r} is declared twice{also}"
    remedy = f"rename one with {_DECORATORS[second.kind]}"
    return f"{told}; {remedy}" if place is None else f"{place}: {told}; {remedy}"


def _server_of(tool: Tool) -> str | None:
    return None if tool.spec.upstream is None else tool.spec.upstream.server


def _own_name(spec: ToolSpec) -> str:
    return spec.name if spec.upstream is None else spec.upstream.name


def _require_marks(spec: ToolSpec) -> None:
    try:
        marked_params(spec.input_schema)
    except BadMark as error:  # clients would drop the tool without a reason
        raise BadTool(f"tool {spec.name!r}, input schema: {error}") from None


def _compiled(spec: ToolSpec, side: str, schema: object) -> Validator:
    if spec.are_schemas_checked:
        return LateValidator(lambda: validator_for(schema, is_known=True))
    try:
        if spec.upstream is not None:  # not kept for ever: a server can change its definitions at any time
            return compile_schema(schema, fingerprint(schema), dialect_of(schema))
        return validator_for(schema)
    except BadSchema as error:
        raise BadTool(f"{spec.kind} {spec.name!r}, {side} schema: {error}") from None


# Names that several entries claim: which entries of MCP servers are not served for that.
#
# Two of the operator's own tools with one name are a mistake, which stops the start.
#
# Entries of MCP servers come and go while Portbook serves. None of them may take a name over, or a call
# could mean one tool today and a different one tomorrow: of several claimants, none is served. A name of
# the operator's own tools stays theirs, so that no server can take one of them away. So does the folder of
# a skill: no one else can put a file into it.

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
