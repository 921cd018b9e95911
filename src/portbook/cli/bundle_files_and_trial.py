"""Makes a desktop bundle from settings, and tries it: what it holds must be enough to serve."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.cli.list_of_watched_files import watched_files
from portbook.exports.bundle_manifest_and_archive import FILES, WHEELS, BundleManifest, archive
from portbook.exports.needed_secrets import NeededSecrets
from portbook.settings import BadSettings, Settings
from portbook.tools.catalog import Catalog

__all__ = ["MadeBundle", "bundle_files", "make_bundle"]

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
