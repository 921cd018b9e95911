"""Agent Skills from a folder: each subfolder with a `SKILL.md` is a skill, and its files are resources.

All files of a skill are read once, at declaration, and served from memory: its entry has the digest and size
of every file, and they must match the served bytes.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.content_blocks import Blob
from portbook.tools.mistake_place import CallPlace, shown_file
from portbook.tools.spec import SKILL_SCHEME, BadTool, Effect, ToolSpec

__all__ = ["BadFrontmatter", "frontmatter_of", "line_of_member", "specs_from_skills"]


_MANIFEST: Final = "SKILL.md"
_NAME: Final = re.compile(r"(?!.*--)[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", re.ASCII)
_PATH: Final = re.compile(r"[A-Za-z0-9._~/-]+", re.ASCII)

# The limits that the extension sets for servers.
_MAX_FILES: Final = 512
_MAX_BYTES: Final = 16 * 1024 * 1024

# The same as for the list of skills: the served files do not change after the start.
_CACHE_MS: Final = 60_000

_NOTHING: Final[JSONObject] = {"$schema": DIALECT, "type": "object", "properties": {}}


def specs_from_skills(folder: Path, named_at: CallPlace | None = None) -> list[ToolSpec]:
    """Return the files of every skill in `folder` as resources; `named_at` is where its author names it.

    Raises `BadTool` where the folder does not exist, or a skill is not valid.
    """
    if not folder.is_dir():
        said = f"there is no folder of skills {str(folder)!r}; create it, or correct the path"
        raise BadTool(said if named_at is None else f"{named_at}: {said}")
    specs: list[ToolSpec] = []
    for manifest in sorted(folder.glob(f"*/{_MANIFEST}")):
        specs.extend(_skill(manifest))
    return specs


def _skill(manifest: Path) -> list[ToolSpec]:
    folder = manifest.parent
    try:
        text = manifest.read_text("utf-8")
        frontmatter = frontmatter_of(text)
    except BadFrontmatter as error:
        raise BadTool(f"{_shown(manifest)}:{error.line}:1: {error}") from None
    except UnicodeDecodeError:
        raise BadTool(f"{_shown(manifest)}:1:1: not UTF-8; save it as that") from None
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name != folder.name:
        place = f"{_shown(manifest)}:{line_of_member(text, 'name')}:1"
        raise BadTool(f"{place}: its name must be that of its folder: a-z, 0-9 and single hyphens")
    if not isinstance(description, str) or not description:
        place = f"{_shown(manifest)}:{line_of_member(text, 'description')}:1"
        raise BadTool(f"{place}: its frontmatter needs a description: a text that says when to use it")
    files = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    }
    if len(files) > _MAX_FILES or sum(map(len, files.values())) > _MAX_BYTES:
        raise BadTool(f"{folder}: a skill has at most {_MAX_FILES} files and {_MAX_BYTES} bytes in total")
    for path in files:
        if not _PATH.fullmatch(path):
            raise BadTool(f"{folder / path}: use A-Z, a-z, 0-9, '.', '_', '~' and '-' in names of files")
    root = f"{SKILL_SCHEME}{name}/"
    entry: JSONObject = {
        "uri": root + _MANIFEST,
        "frontmatter": frontmatter,
        "resources": cast(
            "JSON",
            [
                {
                    "uri": root + path,
                    "digest": f"sha256:{hashlib.sha256(data).hexdigest()}",
                    "size": len(data),
                }
                for path, data in files.items()
            ],
        ),
    }
    return [
        _file(root + path, data, name, description, entry if path == _MANIFEST else None)
        for path, data in files.items()
    ]


def _shown(manifest: Path) -> str:
    return shown_file(str(manifest.absolute()))


def _file(uri: str, data: bytes, name: str, description: str, entry: JSONObject | None) -> ToolSpec:
    shown_name = name if entry is not None else uri.rsplit("/", 1)[-1]
    mime_type = "text/markdown" if uri.endswith(".md") else mimetypes.guess_type(uri)[0]
    mime_type = mime_type or "application/octet-stream"
    return ToolSpec(
        name=uri,
        description=description if entry is not None else "",
        input_schema=_NOTHING,
        output_schema=True,
        effect=Effect.READ,
        function=_reader(data, mime_type),
        is_inline=True,
        kind="resource",
        shown={"name": shown_name, "mimeType": mime_type, "size": len(data)},
        skill=entry,
        cache_ms=_CACHE_MS,
    )


def _reader(data: bytes, mime_type: str) -> Callable[[JSONObject], list[JSONObject]]:
    try:
        part = Blob(data.decode("utf-8"), mime_type).as_json()
    except UnicodeDecodeError:
        part = Blob(data, mime_type).as_json()
    return lambda _: [part]


# Frontmatter of a Markdown file: the subset of YAML that Agent Skills use, parsed strictly.
#
# The subset is plain and quoted scalars, lists in brackets or with dashes, and one level of nested members.
# Anything else is refused, never guessed: clients must see exactly what the file says.


_BLOCK: Final = re.compile(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_MEMBER: Final = re.compile(r"([A-Za-z_][\w.-]*):(?:[ \t]+(.*?))?[ \t]*")
_NUMBER: Final = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
_WORDS: Final[dict[str, JSON]] = {"true": True, "false": False, "null": None, "~": None}

# Characters that a plain scalar of YAML may not begin with or contain.
_SPECIAL: Final = re.compile(r"[&*!|>%@`{}\[\],#?:-]|.*(: |[ \t]#)")


class BadFrontmatter(ValueError):
    """Frontmatter that cannot be parsed; the message names the fix."""

    def __init__(self, said: str, line: int = 1) -> None:
        super().__init__(said)
        self.line = line


def frontmatter_of(text: str) -> JSONObject:
    """Return the members of a file's frontmatter.

    Raises `BadFrontmatter` where there is none, or it uses YAML beyond the supported subset.
    """
    block = _BLOCK.match(text)
    if block is None:
        raise BadFrontmatter("must begin with a line ---, members, and a line ---")
    members: JSONObject = {}
    current: str | None = None
    for number, line in enumerate(block[1].splitlines(), 2):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0] in " \t":
            _below(members, current, line, number)
            continue
        name, value = _member(line, number)
        if name in members:
            raise BadFrontmatter("the same member twice; keep one", number)
        members[name] = None if value is None else _value(value, number)
        current = name if value is None else None
    return members


def line_of_member(text: str, name: str) -> int:
    """Return the line of a member of the frontmatter; the first line of the file where it has none."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(f"{name}:"):
            return number
        if number > 1 and line.startswith("---"):
            break
    return 1


def _below(members: JSONObject, current: str | None, line: str, number: int) -> None:
    """Add an indented line to the member above it: an item of a list, or a member of an object."""
    if current is None:
        raise BadFrontmatter("indented under a member that has a value", number)
    text = line.strip()
    above = members[current]
    if text.startswith("- "):
        items = above if isinstance(above, list) else []
        if above is not None and not isinstance(above, list):
            raise BadFrontmatter("a list item among members; use one or the other", number)
        members[current] = [*items, _value(text[2:].strip(), number)]
        return
    name, value = _member(text, number)
    inner = above if isinstance(above, dict) else {}
    if (above is not None and not isinstance(above, dict)) or name in inner or value is None:
        raise BadFrontmatter("nest one level only, with unique names and values", number)
    members[current] = {**inner, name: _value(value, number)}


def _member(line: str, number: int) -> tuple[str, str | None]:
    found = _MEMBER.fullmatch(line)
    if found is None:
        raise BadFrontmatter("must be a name, a colon, a space and a value", number)
    return found[1], found[2] or None


def _value(text: str, number: int) -> JSON:
    if text.startswith('"'):
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, str):
            return value
        raise BadFrontmatter("close this double-quoted value", number)
    if text.startswith("'"):
        if len(text) > 1 and text.endswith("'") and "'" not in text[1:-1].replace("''", ""):
            return text[1:-1].replace("''", "'")
        raise BadFrontmatter("close this single-quoted value", number)
    if text.startswith("[") and text.endswith("]"):
        inside = text[1:-1].strip()
        return [_value(item.strip(), number) for item in inside.split(",")] if inside else []
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if _SPECIAL.match(text):
        raise BadFrontmatter("put quotes around this value", number)
    return text
