"""A key of `paths` in an OpenAPI document, taken apart. Pure: no I/O.

OpenAPI wants a plain path. Documents have more, to tell apart operations of one path:

| key | what it means |
| --- | --- |
| `/#X-Amz-Target=Queue.Send` | the path `/`; each request has this header |
| `/#Action=Send&Version=1` | the path `/`; each request has this in its query |
| `/files/{id}#shared` | the path `/files/{id}`; the rest is only part of the operation's name |
| `/alerts?lat={lat}` | the path `/alerts`; the argument `lat` goes into the query, described or not |
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote

__all__ = ["PathKey", "read_path_key", "with_query"]

_BRACED: Final = re.compile(r"([^={}&?]+)=\{([^{}]+)\}")
# What a fragment stands for: with this name, the query of AWS's query protocol; with these, headers.
_QUERY_NAME: Final = "Action"
_HEADER_PREFIX: Final = "x-"


class PathKey(NamedTuple):
    """A path, and what its key says beside it."""

    path: str
    """With the query that the key fixes, without a fragment."""
    in_query: dict[str, str]
    """The name in the query of each name in braces that the key has there."""
    headers: dict[str, str]
    """The headers that the key's fragment stands for."""
    query: dict[str, str]
    """What the key's fragment stands for in the query."""


def read_path_key(key: str) -> PathKey:
    """Return the parts of a key of `paths`."""
    before, _, fragment = key.partition("#")
    path, _, query = before.partition("?")
    in_query: dict[str, str] = {}
    kept: list[str] = []
    for pair in query.split("&") if query else ():
        found = _BRACED.fullmatch(pair)
        if found is None:
            kept.append(pair)
        else:
            in_query[found[2]] = found[1]
    pairs = dict(part.split("=", 1) for part in fragment.split("&") if "=" in part)
    headers = {name: value for name, value in pairs.items() if name.lower().startswith(_HEADER_PREFIX)}
    in_fragment = {name: value for name, value in pairs.items() if name not in headers}
    return PathKey(
        f"{path}?{'&'.join(kept)}" if kept else path,
        in_query,
        headers,
        in_fragment if _QUERY_NAME in in_fragment else {},
    )


def with_query(path: str, pairs: dict[str, str]) -> str:
    """Return `path` with these pairs at the end of its query."""
    added = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs.items())
    if not added:
        return path
    return f"{path}{'&' if '?' in path else '?'}{added}"
