"""Agent Skills from a folder: each subfolder with a `SKILL.md` is a skill, and its files are resources.

All files of a skill are read once, at declaration, and served from memory: its entry has the digest and size
of every file, and they must match the served bytes.
"""

from __future__ import annotations

import hashlib
import mimetypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.content import Blob
from portbook.tools.frontmatter import BadFrontmatter, frontmatter_of, line_of_member
from portbook.tools.source_place import CallPlace, shown_file
from portbook.tools.spec import SKILL_SCHEME, BadTool, Effect, ToolSpec

__all__ = ["specs_from_skills"]

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
