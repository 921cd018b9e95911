"""A desktop bundle that others download, read from its bytes, so that its entry is true. Pure: no I/O."""

from __future__ import annotations

import hashlib
import io
import zipfile
from dataclasses import dataclass
from typing import Final, cast

from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.wire.parsing import parse

__all__ = ["BadBundleFile", "PublishedBundle"]

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
