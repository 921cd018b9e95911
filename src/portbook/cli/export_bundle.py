"""`portbook export mcpb`: a desktop bundle (.mcpb): its files, its manifest, its archive, and a trial of it.

What it holds must be enough to serve, and nothing in it is secret.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.cli.reload_trial_and_watched_files import watched_files
from portbook.exports.client_entry_and_variables import NeededSecrets
from portbook.model import JSONObject
from portbook.settings import BadSettings, Settings
from portbook.tools.catalog import Catalog
from portbook.version import __version__

__all__ = ["BundleManifest", "MadeBundle", "archive", "make_bundle"]

_CHECK_S: Final = 60


@dataclass(frozen=True, slots=True)
class MadeBundle:
    """What a bundle is to be, beside the files of the settings."""

    name: str
    author: str
    description: str
    version: str
    wheel: Path | None
    include: Sequence[Path]
    secrets: NeededSecrets


def make_bundle(settings: Settings, catalog: Catalog, wanted: MadeBundle) -> tuple[bytes, list[str]]:
    """Return the bytes of a bundle, and the names of its files; the toolsets have been loaded.

    Raises `BadSettings` where a bundle cannot carry what the settings need, `OSError` where a file cannot be
    read.
    """
    _require_no_secret_files(settings, wanted.secrets)
    found = bundle_files(settings, wanted.include)
    files = {f"{FILES}/{name}": path.read_bytes() for name, path in found.items()}
    toolsets = [_name_below(settings, toolset) for toolset in settings.more_toolsets]
    config = None if settings.config is None else settings.config.name
    manifest = BundleManifest(
        name=wanted.name,
        title=settings.server_title,
        version=wanted.version,
        description=wanted.description,
        author=wanted.author,
        tools=[(tool.listed, tool.spec.description) for tool in catalog.of("tool")],
        toolsets=toolsets,
        config=config,
        variables=wanted.secrets.variables,
        has_more_tools=bool(settings.mcp_tables),
        has_prompts=bool(catalog.of("prompt")),
        has_yaml=any(name.endswith((".yaml", ".yml")) for name in found),
        wheel=None if wanted.wheel is None else wanted.wheel.name,
    )
    document = json.dumps(manifest.manifest(), indent=2, ensure_ascii=False) + "\n"
    files |= {"manifest.json": document.encode(), "pyproject.toml": manifest.project().encode()}
    if wanted.wheel is not None:
        files[f"{WHEELS}/{wanted.wheel.name}"] = wanted.wheel.read_bytes()
    _require_enough(files, config, toolsets)
    return archive(files), sorted(files)


def _require_no_secret_files(settings: Settings, secrets: NeededSecrets) -> None:
    files = [*secrets.files, *([] if settings.signing_key is None else ["envelope.signing_key"])]
    if files:
        remedy = 'name a variable instead, { env = "NAME" }, for which the bundle asks'
        raise BadSettings(*(f"{name}: a bundle carries no file with a secret; {remedy}" for name in files))


def _name_below(settings: Settings, toolset: str) -> str:
    if not toolset.endswith(".py"):
        return toolset
    return Path(toolset).resolve().relative_to(settings.folder.resolve()).as_posix()


def _require_enough(files: Mapping[str, bytes], config: str | None, toolsets: Sequence[str]) -> None:
    """Raise `BadSettings` where the files alone, in an empty folder, are not enough to serve."""
    with tempfile.TemporaryDirectory() as folder:
        for name, data in files.items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        given = [] if config is None else ["--config", config]
        done = subprocess.run(  # noqa: S603 - this very program
            [sys.executable, "-m", "portbook", "check", "--json", *given, *toolsets],
            cwd=Path(folder, FILES),
            env={name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,  # what it says is told below
            timeout=_CHECK_S,
        )
        said = json.loads(done.stdout) if done.stdout else {"errors": [{"message": "it does not start"}]}
    problems = [f"in the bundle alone: {each['message']}" for each in said["errors"]]
    if problems:
        raise BadSettings(*problems, "--include adds files and folders that the toolsets read")


# The files that a desktop bundle carries: whatever a server is made from, and nothing that is secret.

_SKIPPED: Final = frozenset({"__pycache__", "node_modules"})


def bundle_files(settings: Settings, more: Sequence[Path]) -> dict[str, Path]:
    """Return each file by its path below the folder of the settings; the toolsets have been loaded.

    `more` are files and folders that the toolsets read, which nothing here can know.

    Raises `BadSettings` for a file outside of that folder.
    """
    root = settings.folder.resolve()
    files = [*watched_files(settings), *(root / "portbook.lock" for _ in settings.mcp_tables)]
    folders = (settings.schema_root, settings.asset_schemas, settings.asset_examples, settings.docs_folder)
    for place in (*(folder for folder in folders if folder is not None), *more):
        if not place.exists():
            raise BadSettings(f"{place}: there is no such file or folder")
        files += _files_in(place)
    return {_below(root, path.resolve()): path for path in files if path.is_file()}


def _files_in(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for path in sorted(place.iterdir()):
        if not path.name.startswith(".") and path.name not in _SKIPPED:
            yield from _files_in(path)


def _below(root: Path, path: Path) -> str:
    if not path.is_relative_to(root):
        raise BadSettings(f"{path}: is outside of {root}, whose files a bundle carries; move it there")
    return path.relative_to(root).as_posix()


# `manifest.json` and `pyproject.toml` of a desktop bundle (.mcpb, manifest version 0.4).
#
# The client starts a bundle with uv, which fetches Python and Portbook when the bundle is installed. The
# operator's files are below `server/`, untouched, and records and store are where the person says: a client
# replaces the folder of a bundle with each version.

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
