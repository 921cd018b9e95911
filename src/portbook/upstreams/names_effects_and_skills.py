"""What a server offers as specs of ours: names, effects, skills and their files. Pure: no I/O."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, cast

from portbook.model import JSON, JSONObject
from portbook.tools.spec import BadTool, Effect, Switch, ToolSpec
from portbook.tools.tool_names import canonical_name, is_declarable, name_digest
from portbook.tools.upstream_entries import UpstreamEntry
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.listed_definitions import ObservedDefinition
from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["OfferedSkills", "SkillFile", "effect_of", "files_of", "specs_of"]

_NOT_DECLARABLE: Final = re.compile(r"[^A-Za-z0-9_.-]", re.ASCII)
_KEPT_OF_NAME: Final = 100

_ANY_OBJECT: Final[JSONObject] = {"type": "object"}
_TYPED_TEXT: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "value": {"type": "string"},
        "given": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["name", "value"],
}
_SUGGESTED: Final[JSONObject] = {
    "type": "object",
    "properties": {"values": {"type": "array", "items": {"type": "string"}}},
    "required": ["values"],
}

# Beside name and schemas, what listings show of each kind of entry.
_SHOWN_OF_TOOL: Final = ("title", "icons")
_SHOWN_OF_RESOURCE: Final = ("name", "title", "icons", "mimeType", "size", "annotations")
_SHOWN_OF_PROMPT: Final = ("title", "icons")
_HINTS: Final = ("title", "idempotentHint", "openWorldHint")


def specs_of(
    declared: DeclaredUpstream, served: Iterable[ObservedDefinition], *, completes: bool
) -> Iterator[ToolSpec]:
    """Yield the specs of approved definitions; what cannot be called at all is not among them."""
    served = tuple(served)
    skills = OfferedSkills(served)
    for each in (*served, *skills.unlisted()):
        if each.kind == "tool":
            if declared.serves(each.name):
                yield _tool(declared, each)
        elif each.kind == "prompt":
            yield from _prompt(declared, each, completes=completes)
        elif each.kind != "skill":
            yield from map(skills.marked, _resource(declared, each, completes=completes))


def effect_of(declared: DeclaredUpstream, tool: ObservedDefinition) -> Effect:
    """Return the effect of an approved tool.

    1. What the operator says.
    2. What the server says of itself, which was approved with the definition. What it does not say is what
       MCP assumes then: that the tool is destructive.
    """
    if tool.name in declared.effects:
        return declared.effects[tool.name]
    hints = _object(tool.definition.get("annotations"))
    if hints.get("readOnlyHint") is True:
        return Effect.READ
    return Effect.WRITE if hints.get("destructiveHint") is False else Effect.DESTRUCTIVE


def _entry(declared: DeclaredUpstream, of: ObservedDefinition) -> UpstreamEntry:
    is_confined = None if declared.transport != "stdio" else declared.sandbox is not None
    return UpstreamEntry(declared.alias, of.name, of.definition, is_confined)


def _tool(declared: DeclaredUpstream, tool: ObservedDefinition) -> ToolSpec:
    definition, hints = tool.definition, _object(tool.definition.get("annotations"))
    full = f"{declared.alias}.{tool.name}"
    output: JSON = definition.get("outputSchema")
    is_checked = declared.is_enforced and isinstance(output, dict)
    return ToolSpec(
        name=canonical_name(full),
        description=_text(definition.get("description")),
        input_schema=_object(definition.get("inputSchema")),
        output_schema=cast("JSONObject", output) if is_checked else True,
        effect=effect_of(declared, tool),
        upstream=_entry(declared, tool),
        timeout_ms=declared.timeout_ms,
        shown=_chosen(definition, _SHOWN_OF_TOOL),
        hints=_chosen(hints, _HINTS),
        switch=Switch(),
        declared_name=_declarable(full if declared.has_prefix else tool.name),
        is_result_unchecked=not declared.is_enforced,
    )


def _prompt(declared: DeclaredUpstream, prompt: ObservedDefinition, *, completes: bool) -> Iterator[ToolSpec]:
    definition = prompt.definition
    properties: JSONObject = {}
    required: list[JSON] = []
    for argument in cast("list[JSONObject]", definition.get("arguments") or []):
        name, words = str(argument.get("name")), argument.get("description")
        properties[name] = {"type": "string", **({"description": words} if isinstance(words, str) else {})}
        if argument.get("required") is True:
            required.append(name)
    name = f"{declared.alias}__{prompt.name}" if declared.has_prefix else prompt.name
    switch = Switch()
    yield ToolSpec(
        name=name,
        description=_text(definition.get("description")),
        input_schema={"type": "object", "properties": properties, "required": required},
        output_schema=True,
        effect=Effect.READ,
        upstream=_entry(declared, prompt),
        timeout_ms=declared.timeout_ms,
        kind="prompt",
        is_result_unchecked=not declared.is_enforced,
        shown=_chosen(definition, _SHOWN_OF_PROMPT),
        switch=switch,
    )
    if completes:
        yield _completion(declared, name, prompt, "prompt", switch)


def _resource(
    declared: DeclaredUpstream, resource: ObservedDefinition, *, completes: bool
) -> Iterator[ToolSpec]:
    definition, is_template = resource.definition, resource.kind == "template"
    schema, switch = _ANY_OBJECT, Switch()
    if is_template:
        try:
            names = UriTemplate(resource.name).names
        except BadTool:
            names = ()  # the catalog leaves it out, and says why
        schema = cast(
            "JSONObject", {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        )
    yield ToolSpec(
        name=resource.name,
        description=_text(definition.get("description")),
        input_schema=schema,
        output_schema=True,
        effect=Effect.READ,
        upstream=_entry(declared, resource),
        timeout_ms=declared.timeout_ms,
        kind="resource",
        is_result_unchecked=not declared.is_enforced,
        shown=_chosen(definition, _SHOWN_OF_RESOURCE),
        switch=switch,
    )
    if completes and is_template:
        yield _completion(declared, resource.name, resource, "resource", switch)


def _completion(
    declared: DeclaredUpstream,
    name: str,
    of: ObservedDefinition,
    kind: Literal["prompt", "resource"],
    switch: Switch,
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description="",
        input_schema=_TYPED_TEXT,
        output_schema=_SUGGESTED,
        effect=Effect.READ,
        upstream=_entry(declared, of),
        timeout_ms=declared.timeout_ms,
        kind="completion",
        completes=kind,
        is_result_unchecked=not declared.is_enforced,
        switch=switch,
    )


def _declarable(name: str) -> str:
    """Return a name that MCP clients can call; a server's own may have any characters."""
    if is_declarable(name):
        return name
    return f"{_NOT_DECLARABLE.sub('_', name)[:_KEPT_OF_NAME]}_{name_digest(name)}"


def _chosen(values: JSONObject, names: tuple[str, ...]) -> JSONObject:
    return {name: values[name] for name in names if values.get(name) is not None}


def _object(value: JSON) -> JSONObject:
    return value if isinstance(value, dict) else {}


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


# Skills that a server offers, and their files as resources, each as its entry says.
#
# A server need not list the files of a skill: the entry of the skill names them. A skill is instructions to
# a model. Whoever reads a file of it must get the file that was listed, and approved by its digest, or
# none.

_ALGORITHM: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class SkillFile:
    """One file of a skill, by the skill's entry."""

    uri: str
    digest: str
    size: int | None
    frontmatter: JSONObject | None
    """Of the skill's own file: what the entry says that it begins with."""

    def problem_in(self, contents: list[JSONObject]) -> str | None:
        """Return how what was read differs from the entry, None where it does not."""
        if len(contents) != 1:
            return "a file of a skill is one content"
        data = _bytes_of(contents[0])
        if data is None:
            return "neither text nor base64"
        if self.size is not None and len(data) != self.size:
            return "its size differs from that in the entry of its skill"
        if self.digest != _ALGORITHM + hashlib.sha256(data).hexdigest():
            return "its digest differs from that in the entry of its skill"
        return None if self._has_frontmatter(data) else "its frontmatter differs from that in its entry"

    def _has_frontmatter(self, data: bytes) -> bool:
        if self.frontmatter is None:
            return True
        from portbook.tools.skill_folder import (  # late: few servers have skills
            BadFrontmatter,
            frontmatter_of,
        )

        try:
            return frontmatter_of(data.decode()) == self.frontmatter
        except UnicodeDecodeError:
            return False
        except BadFrontmatter:  # more of YAML than we read; the digest is right
            return True


def files_of(skill: JSONObject) -> Iterator[SkillFile]:
    """Yield the files that the entry of a skill lists with a digest."""
    frontmatter, listed = skill.get("frontmatter"), skill.get("resources")
    for each in listed if isinstance(listed, list) else ():
        file = cast("JSONObject", each) if isinstance(each, dict) else {}
        uri, digest, size = file.get("uri"), file.get("digest"), file.get("size")
        if isinstance(uri, str) and isinstance(digest, str):
            is_own = uri == skill.get("uri") and isinstance(frontmatter, dict)
            begins_with = cast("JSONObject", frontmatter) if is_own else None
            yield SkillFile(uri, digest, size if type(size) is int else None, begins_with)


def _bytes_of(content: JSONObject) -> bytes | None:
    text, blob = content.get("text"), content.get("blob")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(blob, validate=True) if isinstance(blob, str) else None
    except ValueError:
        return None


# As many as a list of resources may have.
_MAX_FILES: Final = 5000


class OfferedSkills:
    """The skills among the definitions of one server."""

    def __init__(self, served: tuple[ObservedDefinition, ...]) -> None:
        self._listed = {each.name for each in served if each.kind == "resource"}
        self._skills = [each for each in served if each.kind == "skill"]
        self._entries = {each.name: each.definition for each in self._skills}
        every = ((each.server, file) for each in self._skills for file in files_of(each.definition))
        self._files: dict[str, tuple[str, SkillFile]] = {}
        for server, file in islice(every, _MAX_FILES):
            self._files.setdefault(file.uri, (server, file))

    def unlisted(self) -> Iterator[ObservedDefinition]:
        """Yield a resource for each file of a skill that the server's list of resources does not have."""
        for uri, (server, file) in self._files.items():
            if uri not in self._listed and not UriTemplate.is_one(uri):
                yield ObservedDefinition(server, "resource", uri, _definition(file))

    def marked(self, spec: ToolSpec) -> ToolSpec:
        """Return a spec that knows its skill, where it is of a skill's own file, and what the entry says."""
        if spec.kind != "resource" or spec.upstream is None:
            return spec
        _, file = self._files.get(spec.name, (None, None))
        return replace(spec, skill=self._entries.get(spec.name), upstream=replace(spec.upstream, file=file))


def _definition(file: SkillFile) -> JSONObject:
    words = file.frontmatter or {}
    shown: JSONObject = {"uri": file.uri, "name": words.get("name") or file.uri.rsplit("/", 1)[-1]}
    if file.size is not None:
        shown["size"] = file.size
    if isinstance(words.get("description"), str):
        shown["description"] = words["description"]
    return shown
