"""`OfferedSkills`: the skills that a server offers, and their files as resources. Pure: no I/O.

A server need not list the files of a skill: the entry of the skill names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Final

from portbook.model import JSONObject
from portbook.tools.skill_file import SkillFile, files_of
from portbook.tools.spec import ToolSpec
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.definitions import ObservedDefinition

__all__ = ["OfferedSkills"]

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
