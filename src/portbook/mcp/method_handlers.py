"""MCP methods that run no tool: initialize, discovery, listings, log levels, subscriptions, skills.

They need a key like every call, and show only what that key may see. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Final, Protocol, cast

from portbook.errors import Finding, Reason, Refused
from portbook.globs import matches
from portbook.mcp.listings_and_cache_lifetime import (
    Listing,
    as_page,
    cached_by_all,
    described_prompt,
    described_resource,
    described_tool,
    directory_of,
    has_tasks,
    is_template,
    missing_servers_meta,
    page_of,
    skill_of,
    skills_of,
)
from portbook.mcp.task_methods import OwnedTasks, TaskDesk, task_answers, task_request_answers
from portbook.model import JSON, Caller, JSONObject
from portbook.protocol.extensions import SKILLS, TASKS, task_ids_of
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import STATELESS_REVISIONS, Revision
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Catalog, Tool
from portbook.version import __version__

__all__ = [
    "LISTEN",
    "About",
    "Asked",
    "Handler",
    "Handlers",
    "TaskStore",
    "capabilities_of",
    "discover_result",
    "initialize_result",
    "subscribe",
    "unsubscribe",
]

# The one method that is answered with a stream.
LISTEN: Final = "subscriptions/listen"

IsAllowed = Callable[[str, JSONObject, Revision], bool]


class Asked(NamedTuple):
    """A request: its params, revision and session, and the digest of its caller's key."""

    params: JSONObject
    revision: Revision
    session: Session
    bound: str


Handler = Callable[[Asked, Caller], JSONObject]


class TaskStore(TaskDesk, OwnedTasks, Protocol):
    """Where tasks are, for both revisions that have them."""


class Handlers:
    """Every method that is answered without running a tool."""

    def __init__(self, catalog: Catalog, is_allowed: IsAllowed, desk: TaskStore, about: About) -> None:
        """Answer from `catalog`; `is_allowed` tells whether a listing may hold a description."""
        self.of_tasks: dict[str, Handler] = task_request_answers(desk)
        """Those of tasks in 2025-11-25, some of which have names that the extension uses for others."""
        self._catalog = catalog
        self._about = about

        def listing(kind: str, tools: Callable[[], list[Tool]]) -> Listing:
            describe = {"tools": described_tool, "prompts": described_prompt}.get(kind, described_resource)
            return Listing(tools, describe, lambda item, revision: is_allowed(kind, item, revision))

        resources = self._resources
        self._listings: dict[str, tuple[str, Listing]] = {
            "tools/list": ("tools", listing("tools", lambda: catalog.of("tool"))),
            "prompts/list": ("prompts", listing("prompts", lambda: catalog.of("prompt"))),
            "resources/list": ("resources", listing("resources", lambda: resources(templates=False))),
            "resources/templates/list": (
                "resourceTemplates",
                listing("resourceTemplates", lambda: resources(templates=True)),
            ),
        }
        self.handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "ping": lambda asked, caller: {},
            "server/discover": self._discover,
            "logging/setLevel": _set_level,
            "tools/list": self._list("tools/list"),
            LISTEN: _listen,
            **task_answers(desk),
        }
        if catalog.has("prompt"):
            self.handlers["prompts/list"] = self._list("prompts/list")
        if catalog.has("resource"):
            self.handlers["resources/list"] = self._list("resources/list")
            self.handlers["resources/templates/list"] = self._list("resources/templates/list")
            self.handlers["resources/subscribe"] = self._subscribe
            self.handlers["resources/unsubscribe"] = _unsubscribe
        if catalog.has_skills or catalog.may_grow:
            self.handlers["skills/list"] = self._list_skills
            self.handlers["skills/get"] = self._get_skill
            self.handlers["resources/directory/read"] = self._read_directory

    def _initialize(self, asked: Asked, caller: Caller) -> JSONObject:
        seen = partial(self._servers_seen_by, caller)
        return initialize_result(self._about, self._catalog, asked.revision, seen)

    def _discover(self, asked: Asked, caller: Caller) -> JSONObject:
        seen = partial(self._servers_seen_by, caller)
        return discover_result(self._about, self._catalog, asked.revision, seen)

    def _servers_seen_by(self, caller: Caller) -> set[str]:
        """Return the MCP servers of which the caller sees something."""
        entries = ((spec.upstream, spec.name) for spec in self._catalog.specs() if spec.is_on)
        return {entry.server for entry, name in entries if entry and matches(caller.tools, name)}

    def _list(self, method: str) -> Handler:
        member, listing = self._listings[method]

        def answer(asked: Asked, caller: Caller) -> JSONObject:
            seen = listing.of(asked.revision, lambda name: matches(caller.tools, name))
            return {
                **_page(member, seen, asked),
                **missing_servers_meta(self._about.missing_servers(), caller),
            }

        return answer

    def _resources(self, *, templates: bool) -> list[Tool]:
        return [tool for tool in self._catalog.of("resource") if is_template(tool) == templates]

    def _subscribe(self, asked: Asked, caller: Caller) -> JSONObject:
        uri = cast("str", asked.params["uri"])
        found = self._catalog.locate(uri)
        if found is None or not matches(caller.tools, found[0]):
            raise Refused(Reason.UNKNOWN_RESOURCE)
        if not subscribe(asked.session, uri):
            finding = Finding("/params/uri", "too many subscriptions; unsubscribe from one", "maxItems", "")
            raise Refused(Reason.BAD_PARAMS, (finding,))
        return {}

    def _visible_skills(self, caller: Caller) -> list[Tool]:
        return [
            tool
            for tool in self._catalog.of("resource")
            if tool.spec.skill is not None and matches(caller.tools, tool.spec.name)
        ]

    def _list_skills(self, asked: Asked, caller: Caller) -> JSONObject:
        return _page("skills", skills_of(self._visible_skills(caller)), asked)

    def _get_skill(self, asked: Asked, caller: Caller) -> JSONObject:
        return as_page(skill_of(self._visible_skills(caller), asked.params), asked.revision)

    def _read_directory(self, asked: Asked, caller: Caller) -> JSONObject:
        seen = [tool for tool in self._catalog.of("resource") if matches(caller.tools, tool.spec.name)]
        return _page("resources", directory_of(seen, asked.params, asked.revision), asked)


def _set_level(asked: Asked, caller: Caller) -> JSONObject:
    asked.session.hear_from(cast("str", asked.params["level"]))
    return {}


def _unsubscribe(asked: Asked, caller: Caller) -> JSONObject:
    unsubscribe(asked.session, cast("str", asked.params["uri"]))
    return {}


def _listen(asked: Asked, caller: Caller) -> JSONObject:
    task_ids_of(asked.params)  # raises for task ids that cannot be subscribed to
    return {}  # the connection holds the stream open, and answers when it ends


def _page(member: str, items: list[tuple[str, JSONObject]], asked: Asked) -> JSONObject:
    cursor = asked.params.get("cursor")
    page, following = page_of(items, cursor if isinstance(cursor, str) else None)
    result: JSONObject = {member: cast("JSON", page)}
    if following is not None:
        result["nextCursor"] = following
    return as_page(result, asked.revision)


# The answers to `initialize` and `server/discover`: name, instructions and capabilities.

_META_SERVER: Final = "io.modelcontextprotocol/serverInfo"

# A model reads all of it with every conversation: as much of one server as explains it, and of all.
_MAX_OF_ONE: Final = 8000
_MAX_ALL: Final = 64_000


class About(NamedTuple):
    """How the server introduces itself."""

    name: str = "portbook"
    title: str | None = None
    version: str = __version__
    instructions: str | None = None
    of_servers: Callable[[], Mapping[str, str]] = dict
    """Returns the approved instructions of the MCP servers behind us, by alias."""
    missing_servers: Callable[[], Collection[str]] = tuple
    """Returns the aliases of those that could not be asked what they offer."""

    def as_server(self, revision: Revision) -> JSONObject:
        """Return `serverInfo` as a revision has it."""
        server: JSONObject = {"name": self.name, "version": self.version}
        return {**server, "title": self.title} if self.title and revision.has_titles else server

    def as_instructions(self, seen: Callable[[], Collection[str]] = tuple) -> JSONObject:
        """Return the instructions, ours and those of servers that the caller has `seen`, as a member."""
        told = [] if self.instructions is None else [self.instructions]
        of_servers = self.of_servers()
        if of_servers:
            aliases = seen()
            told += [_under(alias, words) for alias, words in of_servers.items() if alias in aliases]
        return {"instructions": "\n\n".join(told)[:_MAX_ALL]} if told else {}


def _under(alias: str, words: str) -> str:
    cut = words if len(words) <= _MAX_OF_ONE else words[:_MAX_OF_ONE] + "…"
    return f"Tools of {alias}:\n{cut}"


def initialize_result(
    about: About, catalog: Catalog, revision: Revision, seen: Callable[[], Collection[str]]
) -> JSONObject:
    """Return the answer to `initialize`; the caller has `seen` these MCP servers behind us."""
    return {
        "protocolVersion": revision.name,
        "capabilities": capabilities_of(catalog, revision),
        "serverInfo": about.as_server(revision),
        **about.as_instructions(seen),
    }


def discover_result(
    about: About, catalog: Catalog, revision: Revision, seen: Callable[[], Collection[str]]
) -> JSONObject:
    """Return the answer to `server/discover`; the caller has `seen` these MCP servers behind us."""
    result: JSONObject = {
        "supportedVersions": list(STATELESS_REVISIONS),
        "capabilities": capabilities_of(catalog, revision),
        **about.as_instructions(seen),
        "_meta": {_META_SERVER: about.as_server(revision)},
    }
    return cached_by_all(result)


def capabilities_of(catalog: Catalog, revision: Revision) -> JSONObject:
    """Return the capabilities that the server declares in a revision, by what is served."""
    capabilities: JSONObject = {"tools": {"listChanged": True}, "logging": {}}
    if catalog.has("prompt"):
        capabilities["prompts"] = {"listChanged": True}
    if catalog.has("resource"):
        capabilities["resources"] = {"listChanged": True, "subscribe": True}
    if catalog.has("completion") and revision.has_completions:
        capabilities["completions"] = {}
    if revision.has_task_requests and any(has_tasks(tool) for tool in catalog.of("tool")):
        capabilities["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    if not revision.has_handshake:
        extensions: JSONObject = {TASKS: {}}
        if catalog.has_skills:
            extensions[SKILLS] = {"directoryRead": True}
        capabilities["extensions"] = extensions
    return capabilities


# `resources/subscribe`: the resources that a session watches, within limits.

# The most subscriptions of one connection, and their total length; otherwise a client could fill the memory.
_MAX_WATCHED: Final = 1024
_MAX_WATCHED_CHARACTERS: Final = 65_536


def subscribe(session: Session, uri: str) -> bool:
    """Subscribe to a resource; return False where the limit is reached."""
    watched = session.watched
    # One that is watched is noted again: a different process may have been asked to unsubscribe from it.
    if uri not in watched and (
        len(watched) >= _MAX_WATCHED or sum(map(len, watched)) > _MAX_WATCHED_CHARACTERS
    ):
        return False
    session.watch(uri, is_watched=True)
    return True


def unsubscribe(session: Session, uri: str) -> None:
    """Unsubscribe from a resource."""
    session.watch(uri, is_watched=False)
