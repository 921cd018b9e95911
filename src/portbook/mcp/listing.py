"""A list of tools, resources or prompts: made once per revision, filtered by what a caller may see. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Final

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.tools.catalog import Tool

__all__ = ["META_MISSING", "PAGE_SIZE", "Listing", "missing_servers_of", "page_of"]

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


def missing_servers_of(answer: JSON) -> list[str]:
    """Return the MCP servers that an answer names as missing."""
    meta = answer.get("_meta") if isinstance(answer, dict) else None
    missing = meta.get(META_MISSING) if isinstance(meta, dict) else None
    return [str(each) for each in missing] if isinstance(missing, list) else []
