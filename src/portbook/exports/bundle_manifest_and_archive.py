"""`manifest.json` and `pyproject.toml` of a desktop bundle (.mcpb, manifest version 0.4). Pure: no I/O.

The client starts a bundle with uv, which fetches Python and Portbook when the bundle is installed. The
operator's files are below `server/`, untouched, and records and store are where the person says: a client
replaces the folder of a bundle with each version.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from portbook.model import JSONObject
from portbook.version import __version__

__all__ = ["FILES", "WHEELS", "BundleManifest", "archive"]

FILES: Final = "server"
WHEELS: Final = "wheels"
_HERE: Final = "${__dirname}"
_MAX_LINE: Final = 200


@dataclass(frozen=True, slots=True)
class BundleManifest:
    """What a bundle says of itself."""

    name: str
    title: str | None
    version: str
    description: str
    author: str
    tools: Sequence[tuple[str, str]]
    """Name and description of each tool."""
    toolsets: Sequence[str]
    """The toolsets that the command line adds: files below `server/`, or modules."""
    config: str | None
    """The settings file below `server/`."""
    variables: Sequence[str] = ()
    has_more_tools: bool = False
    has_prompts: bool = False
    has_yaml: bool = False
    wheel: str | None = None

    def manifest(self) -> JSONObject:
        """Return the document `manifest.json`."""
        title: JSONObject = {} if self.title is None else {"display_name": self.title}
        return {
            "manifest_version": "0.4",
            "name": self.name,
            **title,
            "version": self.version,
            "description": self.description,
            "author": {"name": self.author},
            "server": {
                "type": "uv",
                "entry_point": self._entry_point(),
                "mcp_config": {"command": "uv", "args": [*self._arguments()], "env": self._environment()},
            },
            "tools": [{"name": name, "description": _line(words)} for name, words in self.tools],
            "tools_generated": self.has_more_tools,
            "prompts_generated": self.has_prompts,
            "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": ">=3.11"}},
            "user_config": self._questions(),
        }

    def project(self) -> str:
        """Return the text of `pyproject.toml`: what uv installs."""
        extra = "[yaml]" if self.has_yaml else ""
        lines = [
            "[project]",
            'name = "portbook-bundle"',
            'version = "0"',
            'requires-python = ">=3.11"',
            f'dependencies = ["portbook{extra}=={__version__}"]',
            "",
            "[tool.uv]",
            "package = false",
        ]
        if self.wheel is not None:
            lines += [
                "",
                "[tool.uv.sources]",
                f"portbook = {{ path = {json.dumps(f'{WHEELS}/{self.wheel}')} }}",
            ]
        return "\n".join(lines) + "\n"

    def _entry_point(self) -> str:
        files = [name for name in self.toolsets if name.endswith(".py")]
        return f"{FILES}/{files[0] if files else self.config or ''}"

    def _arguments(self) -> list[str]:
        given = [] if self.config is None else ["--config", f"{_HERE}/{FILES}/{self.config}"]
        toolsets = [f"{_HERE}/{FILES}/{name}" if name.endswith(".py") else name for name in self.toolsets]
        log_dir = ["--log-dir", "${user_config.records}/runs"]
        return ["run", "--project", _HERE, "portbook", "serve", "--stdio", *given, *log_dir, *toolsets]

    def _environment(self) -> JSONObject:
        asked = {name: f"${{user_config.{_key(name)}}}" for name in self.variables}
        return {"PORTBOOK_STORE": "${user_config.records}/portbook.db", **asked}

    def _questions(self) -> JSONObject:
        secrets: JSONObject = {
            _key(name): {
                "type": "string",
                "title": name,
                "description": f"The value of {name}, which the server needs.",
                "required": True,
                "sensitive": True,
            }
            for name in self.variables
        }
        records: JSONObject = {
            "type": "directory",
            "title": "Records",
            "description": "Where the records of calls and the approvals are kept.",
            "required": True,
            "default": f"${{HOME}}/.portbook/{self.name}",
        }
        return {"records": records, **secrets}


def _key(variable: str) -> str:
    return f"env_{variable.lower()}"


def _line(words: str) -> str:
    return words.partition("\n")[0][:_MAX_LINE]


# A zip archive whose bytes depend on its files alone: no times, no owners, one order.
#
# Nothing is compressed, because the bytes of a compressed file differ from one version of zlib to the next.

# The oldest time that a zip archive can hold.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o100644
_UNIX: Final = 3


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return the archive that holds `files` by their names."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_STORED) as packed:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = _MODE << 16
            entry.create_system = _UNIX
            packed.writestr(entry, files[name])
    return made.getvalue()
