"""MCP methods that run no tool: initialize, discovery, listings, log levels, subscriptions.

They need a key like every call, and show only what that key may see. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, cast

from portbook.errors import Finding, Reason, Refused
from portbook.globs import matches
from portbook.mcp.cache_lifetime import as_page
from portbook.mcp.listings import (
    Listing,
    described_prompt,
    described_resource,
    described_tool,
    is_template,
    missing_servers_meta,
    page_of,
)
from portbook.mcp.resource_subscriptions import subscribe, unsubscribe
from portbook.mcp.server_info import About, discover_result, initialize_result
from portbook.mcp.skill_methods import directory_of, skill_of, skills_of
from portbook.mcp.task_methods import OwnedTasks, TaskDesk, task_answers, task_request_answers
from portbook.model import JSON, Caller, JSONObject
from portbook.protocol.extensions import task_ids_of
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import Revision
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Catalog, Tool

__all__ = ["LISTEN", "Asked", "Handler", "Handlers", "TaskStore"]

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
