"""OpenAPI documents and what they refer to: files of one folder, read once. Nothing is ever fetched."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

from portbook.errors import Refused
from portbook.model import JSON
from portbook.wire.parsing import parse

__all__ = ["BadOpenAPI", "DocumentNode", "Documents"]

# Larger than any API description that people wrote; Azure's largest has 12 MiB.
_MAX_BYTES: Final = 33_554_432
# YAML's aliases can make a few lines mean more than memory holds: this many values are written out, no more.
_MAX_VALUES: Final = 2_000_000
# A reference may lead to a reference; more steps than this are a circle.
_MAX_STEPS: Final = 32
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


class BadOpenAPI(ValueError):
    """A document that cannot be imported; the message says where and why."""


class DocumentNode(NamedTuple):
    """A part of a document, and where it stands."""

    value: JSON
    file: str
    pointer: str

    def at(self, *keys: str | int) -> DocumentNode:
        """Return what stands below, or a node with None where nothing does."""
        node = self
        for key in keys:
            node = node._below(key)
        return node

    def _below(self, key: str | int) -> DocumentNode:
        value: JSON = None
        if isinstance(self.value, dict):
            value = self.value.get(str(key))
        elif isinstance(self.value, list) and isinstance(key, int):
            value = self.value[key]
        escaped = str(key).replace("~", "~0").replace("/", "~1")
        return DocumentNode(value, self.file, f"{self.pointer}/{escaped}")

    @property
    def members(self) -> dict[str, DocumentNode]:
        """Return the members of an object; none where it is no object."""
        return {key: self.at(key) for key in self.value} if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[DocumentNode]:
        """Return the items of a list; none where it is no list."""
        count = len(self.value) if isinstance(self.value, list) else 0
        return [self.at(index) for index in range(count)]

    def text(self, key: str) -> str | None:
        """Return a string that stands below, or None."""
        value = self.at(key).value
        return value if isinstance(value, str) else None

    def bad(self, sentence: str) -> BadOpenAPI:
        """Return the exception for this part."""
        return BadOpenAPI(f"{self.file}#{self.pointer}: {sentence}")


class Documents:
    """The files of one API description."""

    def __init__(self, entry: Path) -> None:
        real = entry.resolve()
        self._folder = real.parent
        self._entry = real.name
        self._roots: dict[str, JSON] = {}

    def root(self) -> DocumentNode:
        """Return the whole of the document that everything starts from.

        Raises `BadOpenAPI` where it cannot be read.
        """
        return DocumentNode(self._load(self._entry), self._entry, "")

    def resolved(self, node: DocumentNode) -> DocumentNode:
        """Return `node`, or what it refers to where it is a reference.

        Raises `BadOpenAPI` for a reference that leads nowhere, out of the folder, or in a circle.
        """
        for _ in range(_MAX_STEPS):
            reference = node.text("$ref")
            if reference is None:
                return node
            node = self.target(node, reference)
        raise node.bad("refers to itself")

    def target(self, node: DocumentNode, reference: str) -> DocumentNode:
        """Return what `reference`, which stands at `node`, refers to.

        Raises `BadOpenAPI` for one that leads nowhere or out of the folder.
        """
        file, _, fragment = reference.partition("#")
        if _SCHEME.match(file):
            raise node.bad("refers to another place on the network; nothing is fetched, put a copy beside it")
        if file:
            # As in a browser: a reference in `schemas/pet.json` starts in `schemas`.
            name = (Path(node.file).parent / unquote(file)).as_posix()
            found = DocumentNode(self._load(name, node), name, "")
        else:
            found = DocumentNode(self._load(node.file), node.file, "")
        pointer = unquote(fragment)
        if pointer and not pointer.startswith("/"):
            raise node.bad("refers to an anchor; only #/a/path is followed")
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            is_index = _INDEX.fullmatch(key) is not None
            if isinstance(found.value, list) and is_index and int(key) < len(found.value):
                found = found.at(int(key))
            elif isinstance(found.value, dict) and key in found.value:
                found = found.at(key)
            else:
                raise node.bad("refers to something that is not there")
        return found

    def _load(self, name: str, node: DocumentNode | None = None) -> JSON:
        if name not in self._roots:
            self._roots[name] = self._read(name, node)
        return self._roots[name]

    def _read(self, name: str, node: DocumentNode | None) -> JSON:
        try:
            path = (self._folder / name).resolve()
            is_inside = path.is_relative_to(self._folder)
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1 if is_inside else 0)
        except (OSError, ValueError):  # a name that no file can have is a ValueError
            raise BadOpenAPI(f"{name}: cannot be read") from None
        if node is not None and not is_inside:
            raise node.bad("refers to a file outside of its folder")
        if len(data) > _MAX_BYTES:
            raise BadOpenAPI(f"{name}: larger than {_MAX_BYTES} bytes")
        if path.suffix.lower() in (".yaml", ".yml"):
            return _parse_yaml(name, data)
        try:
            return parse(data)
        except Refused as refusal:
            raise BadOpenAPI(f"{name}: {refusal.findings[0].message}") from None


def _parse_yaml(name: str, data: bytes) -> JSON:
    try:
        import yaml
    except ImportError:
        raise BadOpenAPI(
            f"{name}: reading YAML needs PyYAML to be installed; or convert it to JSON"
        ) from None
    try:
        return _plain(yaml.safe_load(data), [_MAX_VALUES])
    except (yaml.YAMLError, RecursionError, ValueError):
        raise BadOpenAPI(f"{name}: not YAML that JSON could hold") from None


def _plain(value: Any, left: list[int]) -> JSON:
    """Return what YAML means as JSON: `200:` is the key "200", and a date is its text."""
    left[0] -= 1
    if left[0] < 0:
        raise ValueError
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return {key if isinstance(key, str) else str(key): _plain(item, left) for key, item in pairs}
    if isinstance(value, list):
        return [_plain(item, left) for item in cast("list[Any]", value)]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
