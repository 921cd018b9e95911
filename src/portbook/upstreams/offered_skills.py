"""Skills that a server offers, and their files as resources, each as its entry says. Pure: no I/O.

A server need not list the files of a skill: the entry of the skill names them. A skill is instructions to a
model. Whoever reads a file of it must get the file that was listed, and approved by its digest, or none.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, cast

from portbook.model import JSONObject
from portbook.tools.spec import ToolSpec
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.listed_definitions import ObservedDefinition

__all__ = ["OfferedSkills", "SkillFile", "files_of"]

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
