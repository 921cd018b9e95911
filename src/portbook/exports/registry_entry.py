"""`server.json`: the entry of a server in the MCP registry, and the published bundle that it names.

Pure: no I/O. The schema is that of 2025-12-11. What it and the registry refuse is refused here first, with
what to do.
"""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from dataclasses import dataclass
from typing import Final, cast

from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.net.destinations import BadDestination, parse_destination
from portbook.text.late_pattern import late_pattern
from portbook.wire.parsing import parse

__all__ = ["BadBundleFile", "BadEntry", "PublishedBundle", "PyPIPackage", "RegistryEntry", "Remote"]

_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_NAME: Final = late_pattern(rf"{_LABEL}(?:\.{_LABEL})+/[a-zA-Z0-9](?:[a-zA-Z0-9._-]*[a-zA-Z0-9])?", re.ASCII)
# The registry refuses ranges: one entry is one release.
_VERSION: Final = late_pattern(r"[0-9]+(?:\.[0-9]+){1,3}(?:[-+.]?[0-9A-Za-z][0-9A-Za-z.+-]*)?", re.ASCII)
_MODULE: Final = late_pattern(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_MAX_NAME: Final = 200
_MAX_TEXT: Final = 100
_HOSTS: Final = {"github.com": "github", "gitlab.com": "gitlab"}


class BadEntry(ValueError):
    """Something that the registry would refuse; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PyPIPackage:
    """A package whose command has the package's name and is Portbook's, serving some of its modules."""

    name: str
    modules: tuple[str, ...]

    def entry(self, version: str, variables: tuple[str, ...]) -> JSONObject:
        """Return the package as `uvx` starts it.

        Raises `BadEntry` where it serves no module, or a file, which a package does not have.
        """
        if not self.modules:
            raise BadEntry("--pypi: name the modules of the package that have a Toolset")
        for module in self.modules:
            if not _MODULE.fullmatch(module) or module.endswith(".py"):
                raise BadEntry(
                    "--pypi: name modules that the package installs, such as greetings.tools, not files"
                )
        arguments: list[JSONObject] = [
            {"type": "positional", "value": "serve"},
            {"type": "named", "name": "--stdio"},
            *({"type": "positional", "value": module} for module in self.modules),
        ]
        return {
            "registryType": "pypi",
            "identifier": self.name,
            "version": version,
            "runtimeHint": "uvx",
            "transport": {"type": "stdio"},
            "packageArguments": [*arguments],
            **_variables(variables),
        }


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that runs already, and whether it needs a key."""

    url: str
    has_key: bool

    def entry(self) -> JSONObject:
        """Return where it is; raises `BadEntry` where only one machine can reach it."""
        found: JSONObject = {"type": "streamable-http", "url": _https(self.url, "--remote")}
        if self.has_key:
            asked: JSONObject = {"description": "A key of this server.", "isRequired": True, "isSecret": True}
            header: JSONObject = {
                "name": "Authorization",
                "value": "Bearer {key}",
                "isRequired": True,
                "isSecret": True,
                "variables": {"key": asked},
            }
            found["headers"] = [header]
        return found


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    """Everything that an entry says of a server."""

    name: str
    title: str | None
    description: str
    version: str
    repository: str | None = None
    pypi: PyPIPackage | None = None
    bundle: PublishedBundle | None = None
    remote: Remote | None = None
    variables: tuple[str, ...] = ()

    def document(self) -> JSONObject:
        """Return the document.

        Raises `BadEntry` for what the registry would refuse.
        """
        self._require_texts()
        packages: list[JSONObject] = []
        if self.pypi is not None:
            packages.append(self.pypi.entry(self.version, self.variables))
        if self.bundle is not None:
            packages.append(_bundle(self.bundle, self.version))
        if not packages and self.remote is None:
            raise BadEntry("say where the server comes from: --pypi, --bundle-url with --bundle, or --remote")
        found: JSONObject = {"$schema": _SCHEMA, "name": self.name}
        if self.title is not None:
            found["title"] = self.title
        found |= {"description": self.description, "version": self.version}
        if self.repository is not None:
            found["repository"] = _repository(self.repository)
        if packages:
            found["packages"] = [*packages]
        if self.remote is not None:
            found["remotes"] = [self.remote.entry()]
        return found

    def _require_texts(self) -> None:
        if len(self.name) > _MAX_NAME or not _NAME.fullmatch(self.name):
            raise BadEntry("--name: write a domain backwards, a slash and a name: io.github.you/greetings")
        if not 1 <= len(self.description) <= _MAX_TEXT:
            raise BadEntry(f"--description: write 1 to {_MAX_TEXT} characters that say what the tools do")
        if self.title is not None and not 1 <= len(self.title) <= _MAX_TEXT:
            raise BadEntry(f"server.title: write at most {_MAX_TEXT} characters")
        if not _VERSION.fullmatch(self.version):
            raise BadEntry("--version: write one version, such as 1.2.0, and no range")


def _bundle(bundle: PublishedBundle, version: str) -> JSONObject:
    """Return the bundle as a package; its own manifest asks for the secrets.

    Raises `BadEntry` where the address cannot be fetched from anywhere, or the bundle is another release.
    """
    if bundle.version != version:
        raise BadEntry(
            f"--bundle: it is of version {bundle.version[:40]!r}, and the entry of {version!r}; "
            "make the bundle again, or correct --version"
        )
    return {
        "registryType": "mcpb",
        "identifier": _https(bundle.url, "--bundle-url"),
        "version": version,
        "fileSha256": bundle.sha256,
        "transport": {"type": "stdio"},
    }


def _variables(names: tuple[str, ...]) -> JSONObject:
    if not names:
        return {}
    return {"environmentVariables": [{"name": name, "isRequired": True, "isSecret": True} for name in names]}


def _repository(url: str) -> JSONObject:
    host = parse_destination(_https(url, "--repository")).host
    return {"url": url, "source": _HOSTS.get(host, host)}


def _https(url: str, option: str) -> str:
    try:
        destination = parse_destination(url)
    except BadDestination as error:
        raise BadEntry(f"{option}: write an address that others can reach, https://…: {error}") from None
    if destination.scheme != "https":
        raise BadEntry(f"{option}: write an address that others can reach: https://…")
    return url


# A desktop bundle that others download, read from its bytes, so that its entry is true.

_MANIFEST: Final = "manifest.json"
# Far more than any manifest has, and little enough for whatever an archive claims to unpack to.
_MAX_MANIFEST: Final = 4 * 1024 * 1024
# What every version of the manifest's format requires.
_REQUIRED: Final = {"name": str, "version": str, "description": str, "author": dict, "server": dict}


class BadBundleFile(ValueError):
    """A file that is no bundle; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PublishedBundle:
    """A bundle at an address: the version that it says itself, and the digest of its bytes."""

    url: str
    version: str
    sha256: str

    @classmethod
    def of(cls, url: str, data: bytes) -> PublishedBundle:
        """Return the bundle whose bytes are `data`.

        Raises `BadBundleFile` where no client could install it.
        """
        manifest = _manifest(data)
        for key, kind in _REQUIRED.items():
            if not isinstance(manifest.get(key), kind):
                raise _bad(f"{_MANIFEST} has no usable {key}")
        return cls(url, cast("str", manifest["version"]), hashlib.sha256(data).hexdigest())


def _manifest(data: bytes) -> JSONObject:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            if packed.testzip() is not None:
                raise _bad("a file in it is damaged")
            with packed.open(_MANIFEST) as file:
                text = file.read(_MAX_MANIFEST + 1)
    except BadBundleFile:
        raise
    except KeyError:
        raise _bad(f"there is no {_MANIFEST} in it") from None
    # What zipfile raises for bytes that are none: a bad header, a method it does not know, a password.
    except (zipfile.BadZipFile, EOFError, RuntimeError, ValueError, OSError):
        raise _bad("it is no zip archive") from None
    try:
        manifest = parse(text)
    except Refused:
        raise _bad(f"{_MANIFEST} is not JSON") from None
    if len(text) > _MAX_MANIFEST or not isinstance(manifest, dict):
        raise _bad(f"{_MANIFEST} is no JSON object")
    return manifest


def _bad(why: str) -> BadBundleFile:
    return BadBundleFile(f"--bundle: not a bundle: {why}; `portbook export mcpb` writes one")
