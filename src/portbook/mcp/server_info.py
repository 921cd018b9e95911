"""What `initialize` and `server/discover` tell of the server: name, instructions and capabilities. Pure."""

from __future__ import annotations

from portbook.model import JSONObject
from portbook.protocol.extensions import SKILLS, TASKS
from portbook.protocol.revisions import Revision
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Catalog
from portbook.version import __version__

__all__ = ["About", "capabilities_of"]


class About(NamedTuple):
    """How the server introduces itself."""

    name: str = "portbook"
    title: str | None = None
    version: str = __version__
    instructions: str | None = None

    def as_server(self, revision: Revision) -> JSONObject:
        """Return `serverInfo` as a revision has it."""
        server: JSONObject = {"name": self.name, "version": self.version}
        return {**server, "title": self.title} if self.title and revision.has_titles else server

    def as_instructions(self) -> JSONObject:
        """Return the instructions, as a member of a result."""
        return {} if self.instructions is None else {"instructions": self.instructions}


def capabilities_of(catalog: Catalog, revision: Revision) -> JSONObject:
    """Return the capabilities that the server declares in a revision, by what is served."""
    capabilities: JSONObject = {"tools": {"listChanged": True}, "logging": {}}
    if catalog.has("prompt"):
        capabilities["prompts"] = {"listChanged": True}
    if catalog.has("resource"):
        capabilities["resources"] = {"listChanged": True, "subscribe": True}
    if catalog.has("completion") and revision.has_completions:
        capabilities["completions"] = {}
    if not revision.has_handshake:
        extensions: JSONObject = {TASKS: {}}
        if catalog.has_skills:
            extensions[SKILLS] = {"directoryRead": True}
        capabilities["extensions"] = extensions
    return capabilities
