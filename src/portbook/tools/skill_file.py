"""`SkillFile`: what a server says of a file of a skill, and how a file differs from that. Pure: no I/O.

A skill is instructions to a model. Whoever reads a file of it must get the file that was listed, and approved
by its digest, or none.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

from portbook.model import JSONObject
from portbook.tools.frontmatter import BadFrontmatter, frontmatter_of

__all__ = ["SkillFile", "files_of"]

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
