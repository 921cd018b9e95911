"""Loads an OpenAPI document and the files it refers to, from one folder. Nothing is ever fetched.

JSON is read strictly, but for values that no program can hold.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

from portbook.apis.left_out_operations import Cause
from portbook.apis.openapi.swagger import is_swagger, openapi_of
from portbook.apis.openapi.yaml_reader import NotYAML, parse_yaml
from portbook.canonical import json_bytes
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.wire.parsing import parse

__all__ = ["MAX_DOCUMENT_BYTES", "BadOpenAPI", "DocumentNode", "Documents", "parse_json"]

# Larger than any real API description; the largest known, Microsoft Graph's beta, has 47 MB.
MAX_DOCUMENT_BYTES: Final = 67_108_864
# A reference may lead to a reference; more steps than this are a cycle.
_MAX_STEPS: Final = 32
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)


class BadOpenAPI(ValueError):
    """A document, or an operation of it, that cannot be imported; the message gives place and reason."""

    def __init__(self, message: str, cause: Cause = Cause.INVALID) -> None:
        super().__init__(message)
        self.cause = cause


class DocumentNode(NamedTuple):
    """A part of a document, with its file and pointer."""

    value: JSON
    file: str
    pointer: str

    def at(self, *keys: str | int) -> DocumentNode:
        """Return the node at these keys; its value is None where there is none."""
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
        name = str(key)
        if "/" in name or "~" in name:
            name = name.replace("~", "~0").replace("/", "~1")
        return DocumentNode(value, self.file, f"{self.pointer}/{name}")

    @property
    def members(self) -> dict[str, DocumentNode]:
        """Return the members of an object; empty where it is not an object."""
        return {key: self.at(key) for key in self.value} if isinstance(self.value, dict) else {}

    @property
    def items(self) -> list[DocumentNode]:
        """Return the items of a list; empty where it is not a list."""
        count = len(self.value) if isinstance(self.value, list) else 0
        return [self.at(index) for index in range(count)]

    def text(self, key: str) -> str | None:
        """Return the string at `key`, or None."""
        value = self.at(key).value
        return value if isinstance(value, str) else None

    def bad(self, sentence: str, cause: Cause = Cause.INVALID) -> BadOpenAPI:
        """Return the exception for this part."""
        return BadOpenAPI(f"{self.file}#{self.pointer}: {sentence}", cause)

    def bad_reference(self, sentence: str) -> BadOpenAPI:
        """Return the exception for a reference that cannot be followed."""
        return self.bad(sentence, Cause.REFERENCE)


class Documents:
    """The files of one API description."""

    def __init__(self, entry: Path, problem_of: Callable[[bytes], str | None] = lambda _: None) -> None:
        """Read the document at `entry`; `problem_of` returns why its bytes are not the document, if so."""
        real = entry.resolve()
        self._problem_of = problem_of
        self._folder = real.parent
        self.entry = real.name
        """The name of the file that the others are read for."""
        self._roots: dict[str, JSON] = {}

    def root(self) -> DocumentNode:
        """Return the root of the entry document.

        Raises `BadOpenAPI` where it cannot be read.
        """
        return DocumentNode(self._load(self.entry), self.entry, "")

    def resolved(self, node: DocumentNode) -> DocumentNode:
        """Return `node`, or its target where it is a reference.

        Raises `BadOpenAPI` for a reference without a target, out of the folder, or in a cycle.
        """
        for _ in range(_MAX_STEPS):
            reference = node.text("$ref")
            if reference is None:
                return node
            node = self.target(node, reference)
        raise node.bad_reference("refers to itself")

    def target(self, node: DocumentNode, reference: str) -> DocumentNode:
        """Return the target of `reference`, which is at `node`.

        Raises `BadOpenAPI` where it has no target, or leads out of the folder.
        """
        file, _, fragment = reference.partition("#")
        if _SCHEME.match(file):
            raise node.bad_reference("refers to a URL, which is never fetched; put a copy beside this file")
        if file:
            name = self._name_of(node, unquote(file))
            found = DocumentNode(self._load(name, node), name, "")
        else:
            found = DocumentNode(self._load(node.file), node.file, "")
        pointer = unquote(fragment)
        if pointer and not pointer.startswith("/"):
            raise node.bad_reference("refers to an anchor; only pointers such as #/a/path are supported")
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            is_index = _INDEX.fullmatch(key) is not None
            if isinstance(found.value, list) and is_index and int(key) < len(found.value):
                found = found.at(int(key))
            elif isinstance(found.value, dict) and key in found.value:
                found = found.at(key)
            else:
                raise node.bad_reference("refers to a part that does not exist")
        return found

    def _name_of(self, node: DocumentNode, file: str) -> str:
        """Return the one name of a file: its path in the folder, however a reference at `node` writes it.

        Raises `BadOpenAPI` where it lies outside of the folder. Nothing is opened.
        """
        try:
            # Relative to the referring file: a reference in `schemas/pet.json` starts in `schemas`.
            path = (self._folder / Path(node.file).parent / file).resolve()
        except (OSError, ValueError, RuntimeError):  # an invalid name, or links in a circle
            raise node.bad_reference("refers to a file that cannot be read") from None
        if not path.is_relative_to(self._folder):
            raise node.bad_reference("refers to a file outside of its folder")
        return path.relative_to(self._folder).as_posix()

    def _load(self, name: str, node: DocumentNode | None = None) -> JSON:
        if name not in self._roots:
            root = self._read(name, node)
            self._roots[name] = openapi_of(cast("JSONObject", root)) if is_swagger(root) else root
        return self._roots[name]

    def _read(self, name: str, node: DocumentNode | None) -> JSON:
        try:
            path = (self._folder / name).resolve()
            # Before anything is opened: opening alone can have effects, or never return.
            if node is not None and not path.is_relative_to(self._folder):
                raise node.bad_reference("refers to a file outside of its folder")
            data = _bytes_of(path)
        except (OSError, ValueError) as error:  # ValueError for an invalid file name
            if isinstance(error, BadOpenAPI):
                raise
            problem = _problem_of_file(error)
            if node is not None:
                raise node.bad_reference(f"refers to a file that {problem}") from None
            raise BadOpenAPI(f"{name}: {problem}") from None
        if len(data) > MAX_DOCUMENT_BYTES:
            raise BadOpenAPI(f"{name}: larger than {MAX_DOCUMENT_BYTES} bytes")
        problem = self._problem_of(data) if name == self.entry else None
        if problem is not None:
            raise BadOpenAPI(problem)
        if path.suffix.lower() in (".yaml", ".yml"):
            return _from_yaml(name, data)
        try:
            return parse_json(data)
        except Refused as refusal:
            raise BadOpenAPI(f"{name}: {refusal.findings[0].message}") from None


def _bytes_of(path: Path) -> bytes:
    """Return the content of a regular file, or one byte more than allowed.

    Raises `OSError` where it cannot be read, `_NotAFile` where it is not a regular file.
    """
    # Without blocking: a named pipe would wait for its writer.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
            raise _NotAFile(stat.S_ISDIR(mode))
        return file.read(MAX_DOCUMENT_BYTES + 1)


class _NotAFile(OSError):
    """Something that is not a regular file."""

    def __init__(self, is_folder: bool) -> None:
        super().__init__()
        self.is_folder = is_folder


def _problem_of_file(error: OSError | ValueError) -> str:
    """Return what is wrong with a file, and what to do about it."""
    match error:
        case _NotAFile(is_folder=True) | IsADirectoryError():
            return "is a folder; name the document in it"
        case _NotAFile():
            return "is not a regular file, but a pipe, a socket or a device; copy its content into a file"
        case FileNotFoundError() | NotADirectoryError():
            return "does not exist; check its name"
        case PermissionError():
            return "may not be read; check its permissions"
        case _:
            return "cannot be read"


def _from_yaml(name: str, data: bytes) -> JSON:
    try:
        return parse_yaml(data)
    except ImportError:
        raise BadOpenAPI(
            f"{name}: reading YAML needs py-yaml12: install portbook[yaml], or convert the file to JSON"
        ) from None
    except NotYAML as error:
        raise BadOpenAPI(f"{name}: {error}") from None


# Reads a JSON document of a vendor: strictly, but for values that no program can hold.
#
# One number or one character somewhere in an example must not cost the whole document. A number that is too
# large for a double is null, as `.inf` in YAML, and half of a surrogate pair is the character U+FFFD. All
# other rules of `wire.parsing` apply.

# Python parses no longer integer, and neither does `wire.parsing`.
_MAX_DIGITS: Final = 4_300
# What is left of a surrogate pair whose other half is missing.
_HALF: Final = re.compile("[\ud800-\udfff]")


class _StillNotJSON(ValueError):
    """A rule is broken that is not about a value that no program can hold."""


def parse_json(data: bytes) -> JSON:
    """Return the values of a JSON document.

    Raises `Refused` where it is none.
    """
    try:
        return parse(data)
    except Refused as refusal:
        try:
            # The rules once more, for what is not about values: how deep they nest, for example.
            return parse(json_bytes(_read(data)))
        except (ValueError, RecursionError, Refused):
            raise refusal from None


def _read(data: bytes) -> JSON:
    return json.loads(
        data.decode(),
        parse_float=_number,
        parse_int=lambda digits: int(digits) if len(digits) <= _MAX_DIGITS else None,
        parse_constant=_refuse,
        object_pairs_hook=_object,
    )


def _number(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _refuse(_: str) -> None:
    raise _StillNotJSON


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = {cast("str", _whole(name)): _whole(value) for name, value in pairs}
    if len(found) < len(pairs):
        raise _StillNotJSON
    return found


def _whole(value: Any) -> Any:
    """Return a text, or a list with its texts, without halves of surrogate pairs."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[Any]", value)]
    return value
