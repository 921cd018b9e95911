"""Lists of tools, resources, prompts and skills: filtered by what a caller may see, in pages. Pure: no I/O.

An entry is made once per revision, in the form that the revision has. A result says how long a client may
cache it, where its revision does.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Collection
from typing import Final, cast

from portbook.canonical import json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.globs import matches
from portbook.model import JSON, Caller, JSONObject
from portbook.protocol.revisions_and_methods import Revision
from portbook.tools.catalog import Tool
from portbook.tools.spec import SKILL_SCHEME
from portbook.tools.tool_metadata import hints_by_effect
from portbook.tools.uri_templates import UriTemplate

__all__ = [
    "META_MISSING",
    "PAGE_SIZE",
    "Listing",
    "as_page",
    "cached_by_all",
    "described_prompt",
    "described_resource",
    "described_tool",
    "directory_of",
    "has_tasks",
    "is_object_schema",
    "is_template",
    "kept_for",
    "missing_servers_meta",
    "missing_servers_of",
    "page_of",
    "shown_in",
    "skill_of",
    "skills_of",
]

# Pages of a list, and their cursors.

PAGE_SIZE: Final = 100


def page_of(items: list[tuple[str, JSONObject]], cursor: str | None) -> tuple[list[JSONObject], str | None]:
    """Return the page at `cursor`, the first without one, and the cursor of the next page.

    Raises `Refused` for a cursor that is not of this list.
    """
    start = 0
    if cursor is not None:
        names = [name for name, _ in items]
        last = _decoded(cursor)
        if last not in names:
            finding = Finding(
                "/params/cursor", "not a cursor of this list; start again without one", "cursor", ""
            )
            raise Refused(Reason.BAD_PARAMS, (finding,))
        start = names.index(last) + 1
    page = items[start : start + PAGE_SIZE]
    has_more = start + PAGE_SIZE < len(items)
    return [described for _, described in page], _encoded(page[-1][0]) if has_more else None


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{name}".encode()).decode()


def _decoded(cursor: str) -> str | None:
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return text.removeprefix("after:") if text.startswith("after:") else None


# In `_meta` of a list: the MCP servers that it has nothing of, because they could not be asked.
META_MISSING: Final = "portbook/missing_servers"

# Makes one entry of a listing, in one revision.
Describe = Callable[[Tool, Revision], JSONObject]


class Listing:
    """The listing of one kind, in the form of each revision; each entry is made once.

    An entry that is invalid in a revision is left out there; the rest is listed.
    """

    def __init__(
        self,
        tools: Callable[[], list[Tool]],
        describe: Describe,
        is_allowed: Callable[[JSONObject, Revision], bool],
    ) -> None:
        self._tools = tools
        self._describe = describe
        self._is_allowed = is_allowed
        self._made: dict[tuple[str, str], tuple[Tool, JSONObject | None]] = {}

    def of(self, revision: Revision, may_see: Callable[[str], bool]) -> list[tuple[str, JSONObject]]:
        """Return names and entries of what a caller may see, ordered by name: a tool's canonical one."""
        seen = [tool for tool in self._tools() if may_see(tool.spec.name)]
        made = [(tool.spec.name, self._made_for(tool, revision)) for tool in seen]
        return [(name, described) for name, described in made if described is not None]

    def _made_for(self, tool: Tool, revision: Revision) -> JSONObject | None:
        key = (revision.name, tool.spec.name)
        made = self._made.get(key)
        if made is None or made[0] is not tool:  # a server behind us may change what it offers
            described = self._describe(tool, revision)
            made = tool, described if self._is_allowed(described, revision) else None
            self._made[key] = made
        return made[1]


def missing_servers_meta(missing: Collection[str], caller: Caller) -> JSONObject:
    """Return as `_meta` which MCP servers a list has nothing of, because they could not be asked.

    Only of servers of which the caller may use whatever they have: the names say that they exist.
    """
    told: list[JSON] = [alias for alias in missing if matches(caller.tools, f"{alias}.anything")]
    return {"_meta": {META_MISSING: told}} if told else {}


def missing_servers_of(answer: JSON) -> list[str]:
    """Return the MCP servers that an answer names as missing."""
    meta = answer.get("_meta") if isinstance(answer, dict) else None
    missing = meta.get(META_MISSING) if isinstance(meta, dict) else None
    return [str(each) for each in missing] if isinstance(missing, list) else []


# Entries in the form of each revision.


def described_tool(tool: Tool, revision: Revision) -> JSONObject:
    """Return a tool as a listing has it."""
    spec = tool.spec
    described: JSONObject = {"name": tool.listed, "inputSchema": _input_schema(spec.input_schema)}
    if spec.description:
        described["description"] = spec.description
    if revision.has_annotations:
        described["annotations"] = {**hints_by_effect(spec), **spec.hints}
    if revision.has_structured_content and isinstance(spec.listed_output, dict):
        wrapped = revision.wants_objects and not is_object_schema(spec.listed_output)
        described["outputSchema"] = _wrapped(spec.listed_output) if wrapped else _explicit(spec.listed_output)
    if revision.has_task_requests and has_tasks(tool):
        described["execution"] = {"taskSupport": "optional"}
    return {**described, **shown_in(spec.shown, revision)} if spec.shown else described


def has_tasks(tool: Tool) -> bool:
    """Return whether a call may run as a task: by the tool's author, or by the server that offers it."""
    spec = tool.spec
    if spec.upstream is None:
        return spec.task != "never"
    execution = spec.upstream.definition.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") in ("optional", "required")


def shown_in(shown: JSONObject, revision: Revision) -> JSONObject:
    """Return the descriptive members of a listing's entry (title, icons, _meta) that a revision has."""
    unknown: set[str] = set()
    if not revision.has_titles:
        unknown.add("title")
    if not revision.has_icons:
        unknown.add("icons")
    if not revision.has_listing_meta:
        unknown.add("_meta")
    return {name: value for name, value in shown.items() if name not in unknown}


def _input_schema(schema: JSONObject) -> JSONObject:
    # The official schema requires a type, and a schema object for every property.
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {**schema, "type": "object"}
    spelled: JSONObject = {name: _spelled(value) for name, value in properties.items()}
    return {**schema, "type": "object", "properties": spelled}


def _spelled(schema: JSON) -> JSON:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def _explicit(schema: JSONObject) -> JSONObject:
    return _input_schema(schema) if is_object_schema(schema) else schema


def is_object_schema(schema: JSONObject) -> bool:
    """Return whether every value that `schema` allows is an object."""
    reference = schema.get("$ref")
    definitions = schema.get("$defs")
    if isinstance(reference, str) and reference.startswith("#/$defs/") and isinstance(definitions, dict):
        target = definitions.get(reference.removeprefix("#/$defs/"))
        return isinstance(target, dict) and target.get("type") == "object"
    return schema.get("type") == "object"


def _wrapped(schema: JSONObject) -> JSONObject:
    """Return the schema of `{"result": value}`, with the value's own schema inside."""
    inner = {name: value for name, value in schema.items() if name != "$schema"}
    if "$ref" in json_bytes(inner).decode():  # a resource of its own, so that its references still resolve
        inner = {"$id": "urn:portbook:result", **inner}
    dialect: JSONObject = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    return {**dialect, "type": "object", "properties": {"result": inner}, "required": ["result"]}


def is_template(tool: Tool) -> bool:
    """Return whether a resource is a template."""
    return UriTemplate.is_one(tool.spec.name)


def described_resource(tool: Tool, revision: Revision) -> JSONObject:
    """Return a resource, or a resource template, as a listing has it."""
    spec = tool.spec
    described: JSONObject = {"uriTemplate" if is_template(tool) else "uri": spec.name}
    if spec.description:
        described["description"] = spec.description
    return {**described, **shown_in(spec.shown, revision)}


def described_prompt(tool: Tool, revision: Revision) -> JSONObject:
    """Return a prompt as a listing has it."""
    spec = tool.spec
    described: JSONObject = {"name": spec.name, **shown_in(spec.shown, revision)}
    if spec.description:
        described["description"] = spec.description
    properties, required = spec.input_schema.get("properties"), spec.input_schema.get("required", [])
    if isinstance(properties, dict) and properties:
        described["arguments"] = [
            _argument(name, schema, name in cast("list[str]", required))
            for name, schema in properties.items()
        ]
    return described


def _argument(name: str, schema: JSON, is_required: bool) -> JSONObject:
    argument: JSONObject = {"name": name, "required": is_required}
    if isinstance(schema, dict) and isinstance(schema.get("description"), str):
        argument["description"] = schema["description"]
    return argument


# How long a client may cache a result, where its revision says so.

# What is served changes seldom, and subscribed clients are notified.
_CACHE_MS: Final = 60_000


def as_page(result: JSONObject, revision: Revision) -> JSONObject:
    """Return a listing's result, with its cache lifetime where the revision has one."""
    return kept_for(_CACHE_MS, result, revision)


def kept_for(cache_ms: int, result: JSONObject, revision: Revision) -> JSONObject:
    """Return a result with the time for which its caller may cache it, where the revision has one."""
    return _cacheable(result, "private", cache_ms) if revision.has_result_type else result


def cached_by_all(result: JSONObject) -> JSONObject:
    """Return a result that is the same for every caller."""
    return _cacheable(result, "public", _CACHE_MS)


def _cacheable(result: JSONObject, scope: str, cache_ms: int) -> JSONObject:
    return {**result, "resultType": "complete", "ttlMs": cache_ms, "cacheScope": scope}


# The skills extension: lists Agent Skills, and their folders.

_FOLDER: Final = "inode/directory"


def skills_of(tools: list[Tool]) -> list[tuple[str, JSONObject]]:
    """Return the entries of skills, by the URI of each `SKILL.md`."""
    return [(tool.spec.name, cast("JSONObject", tool.spec.skill)) for tool in tools]


def skill_of(tools: list[Tool], params: JSONObject) -> JSONObject:
    """Return the entry of the skill that `params` name.

    Raises `Refused` where there is none.
    """
    found = dict(skills_of(tools)).get(cast("str", params["uri"]))
    if found is None:
        raise _refused("no skill has this URI; list the skills")
    return {"skill": found}


def directory_of(tools: list[Tool], params: JSONObject, revision: Revision) -> list[tuple[str, JSONObject]]:
    """Return the direct children of a skill's folder: files and folders.

    Raises `Refused` where there is no such folder.
    """
    inside = cast("str", params["uri"]).rstrip("/") + "/"
    children: dict[str, JSONObject] = {}
    if inside.startswith(SKILL_SCHEME):
        for tool in tools:
            uri = tool.spec.name
            if not uri.startswith(inside):
                continue
            name, slash, _ = uri[len(inside) :].partition("/")
            child = inside + name
            folder: JSONObject = {"uri": child, "name": name, "mimeType": _FOLDER}
            children[child] = folder if slash else described_resource(tool, revision)
    if not children:
        raise _refused("no folder of a skill has this URI; list the skills")
    return sorted(children.items())


def _refused(message: str) -> Refused:
    return Refused(Reason.BAD_PARAMS, (Finding("/params/uri", message, "uri", ""),))
