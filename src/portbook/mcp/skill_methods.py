"""The skills extension: lists Agent Skills, and their folders. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.errors import Finding, Reason, Refused
from portbook.mcp.listings import described_resource
from portbook.model import JSONObject
from portbook.protocol.revisions_and_methods import Revision
from portbook.tools.catalog import Tool
from portbook.tools.spec import SKILL_SCHEME

__all__ = ["directory_of", "skill_of", "skills_of"]

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
