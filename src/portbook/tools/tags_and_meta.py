"""Tags and `_meta` of tools, validated at declaration. Pure: no I/O.

Tags are for people, for the rules of a policy and, in `_meta`, for clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.tools.spec import BadTool

__all__ = ["TAGS", "meta_of", "tags_of"]

# The member of `_meta` that holds a tool's tags.
TAGS: Final = "portbook/tags"

_MAX_TAG: Final = 100

# The grammar of MCP for keys of `_meta`: an optional prefix of labels with dots, a slash, a name.
_LABEL: Final = "[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_KEY = late_pattern(rf"(?:({_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")

# A prefix whose second label is one of these is MCP's own, and one is ours.
_OF_MCP: Final = ("modelcontextprotocol", "mcp")
_OURS: Final = "portbook"


def tags_of(what: str, tags: Any) -> tuple[str, ...]:
    """Return the tags of a tool, without repetitions.

    Raises `BadTool` where they are not a list of short texts.
    """
    given = cast("Sequence[Any]", tags) if isinstance(tags, list | tuple | set | frozenset) else [None]
    if not all(isinstance(tag, str) and 0 < len(tag) <= _MAX_TAG and tag.isprintable() for tag in given):
        raise BadTool(f"{what}: tags must be a list of texts of 1 to {_MAX_TAG} printable characters")
    ordered = sorted(given) if isinstance(tags, set | frozenset) else given
    return tuple(dict.fromkeys(ordered))


def meta_of(what: str, meta: Any, tags: tuple[str, ...]) -> JSONObject:
    """Return the `_meta` of a tool's listing, under that name: what is given, and the tags.

    Raises `BadTool` where it is not a JSON object, or has a key that MCP or Portbook reserves.
    """
    if meta is not None and not isinstance(meta, dict):
        raise BadTool(f"{what}: meta must be a dict of JSON values")
    own = cast("JSONObject", meta or {})
    for key in own:
        _require_key(what, key)
    try:
        json_bytes(own)
    except NotJSON as error:
        raise BadTool(f"{what}: meta must be a dict of JSON values: {error}") from None
    whole: JSONObject = {**own, **({TAGS: cast("list[JSON]", list(tags))} if tags else {})}
    return {"_meta": whole} if whole else {}


def _require_key(what: str, key: Any) -> None:
    found = _KEY.fullmatch(key) if isinstance(key, str) else None
    if found is None:
        raise BadTool(f"{what}: meta: use keys such as example.com/name: a prefix with a slash, and a name")
    labels = (found[1] or "").split(".")
    if labels[0] == _OURS or any(label in _OF_MCP for label in labels[1:2] or labels):
        raise BadTool(f"{what}: meta: the prefix {found[1]!r} is reserved; use one of your own domain")
