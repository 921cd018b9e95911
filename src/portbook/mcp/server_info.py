"""The answers to `initialize` and `server/discover`: name, instructions and capabilities. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from portbook.mcp.cache_lifetime import cached_by_all
from portbook.mcp.listings import has_tasks
from portbook.model import JSONObject
from portbook.protocol.extensions import SKILLS, TASKS
from portbook.protocol.revisions_and_methods import STATELESS_REVISIONS, Revision
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Catalog
from portbook.version import __version__

__all__ = ["About", "capabilities_of", "discover_result", "initialize_result"]

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
