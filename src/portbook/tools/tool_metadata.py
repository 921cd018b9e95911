"""What an author declares a tool with, validated: titles, icons, annotations, tags, `_meta`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.tools.mistake_place import declared_at
from portbook.tools.spec import BadTool, Effect, ToolSpec

__all__ = [
    "TAGS",
    "bad_default",
    "hints_by_effect",
    "hints_of",
    "meta_of",
    "require_options",
    "require_valid",
    "shown_of",
    "tags_of",
]


class _OptionType(NamedTuple):
    types: tuple[type, ...]
    words: str


_TEXT_OPTION: Final = _OptionType((str,), "a text")
_FLAG: Final = _OptionType((bool,), "True or False")
_NUMBER: Final = _OptionType((int,), "a whole number of milliseconds")
_OBJECT: Final = _OptionType((dict,), "a dict")
_LIST: Final = _OptionType((list, tuple), "a list")

# Those that are not here are checked with what they may hold: effect, task, tags, meta.
_KINDS: Final[Mapping[str, _OptionType]] = {
    "label": _TEXT_OPTION,
    "name": _TEXT_OPTION,
    "description": _TEXT_OPTION,
    "title": _TEXT_OPTION,
    "mime_type": _TEXT_OPTION,
    "inline": _FLAG,
    "detach": _FLAG,
    "timeout_ms": _NUMBER,
    "cache_ms": _NUMBER,
    "icons": _LIST,
    "annotations": _OBJECT,
    "input_schema": _OBJECT,
    "complete": _OBJECT,
    "folder": _OptionType((str, os.PathLike), "a path"),
}


def require_options(what: str, **given: Any) -> None:
    """Raise `BadTool` where an option of `what` is of another type; None is an option that is not given."""
    for option, value in given.items():
        kind = _KINDS[option]
        # A bool is an int to Python, but no number of anything.
        is_of_it = isinstance(value, kind.types) and (kind is _FLAG or not isinstance(value, bool))
        if value is not None and not is_of_it:
            raise BadTool(f"{what}: {option} must be {kind.words}, not {_indefinite(type(value).__name__)}")
    timeout_ms, cache_ms = given.get("timeout_ms"), given.get("cache_ms")
    if timeout_ms is not None and timeout_ms <= 0:
        raise BadTool(f"{what}: timeout_ms must be above 0")
    if cache_ms is not None and cache_ms < 0:
        raise BadTool(f"{what}: cache_ms must be 0 or above")


def bad_default(function: Callable[..., Any], name: str) -> BadTool:
    """Return the exception for a parameter whose default is not of its type."""
    return BadTool(
        f"{declared_at(function)}: the default of parameter {name} is not of its type; correct one of them"
    )


def _indefinite(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiou" else f"a {noun}"


# Titles, icons and audiences in listings, validated.
#
# They are validated at declaration. Otherwise a listing would silently leave out an entry whose metadata is
# not valid MCP.

_TEXT: Final[JSONObject] = {"type": "string", "minLength": 1}

_ICON: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "src": {"type": "string", "format": "uri"},
        "mimeType": _TEXT,
        "sizes": {"type": "array", "items": _TEXT},
        "theme": {"enum": ["light", "dark"]},
    },
    "required": ["src"],
    "additionalProperties": False,
}

_SHOWN: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "title": _TEXT,
        "mimeType": _TEXT,
        "icons": {"type": "array", "items": _ICON},
        "annotations": {
            "type": "object",
            "properties": {
                "audience": {"type": "array", "items": {"enum": ["user", "assistant"]}},
                "priority": {"type": "number", "minimum": 0, "maximum": 1},
                "lastModified": _TEXT,
            },
            "additionalProperties": False,
        },
    },
}


def shown_of(what: str, **members: Any) -> JSONObject:
    """Return the listing metadata of `what`: the members that are given.

    Raises `BadTool` where a member is not valid MCP.
    """
    shown: JSONObject = {name: value for name, value in members.items() if value not in (None, (), [])}
    if isinstance(shown.get("icons"), tuple):
        shown["icons"] = list(members["icons"])
    if shown:
        require_valid(what, shown, _SHOWN)
    return shown


def require_valid(what: str, given: JSONObject, schema: JSONObject) -> None:
    """Raise `BadTool` where metadata of `what` breaks its schema."""
    from portbook.schema.engine import validator_for  # loads the engine only where needed

    findings = validator_for(schema).findings(given)
    if findings:
        raise BadTool(f"{what}: {findings[0].pointer.lstrip('/')}: {findings[0].message}")


# The annotations of a tool: those that it declares, and those that follow from its effect.

_HINTS: Final[JSONObject] = {
    "type": "object",
    "properties": {
        "annotations": {
            "type": "object",
            "properties": {
                "title": _TEXT,
                "readOnlyHint": True,
                "destructiveHint": True,
                "idempotentHint": {"type": "boolean"},
                "openWorldHint": {"type": "boolean"},
            },
            "additionalProperties": False,
        }
    },
}

# Derived from a tool's effect; declared twice, the two could differ.
_BY_EFFECT: Final = ("readOnlyHint", "destructiveHint")


def hints_of(what: str, annotations: Any) -> JSONObject:
    """Return a tool's MCP annotations, without those that its effect determines.

    Raises `BadTool` where they are not valid MCP, or repeat what `effect` declares.
    """
    if annotations is None:
        return {}
    hints: JSONObject = annotations
    require_valid(what, {"annotations": hints}, _HINTS)
    if any(name in hints for name in _BY_EFFECT):
        names = " and ".join(_BY_EFFECT)
        raise BadTool(f"{what}: annotations: remove {names}; effect=... sets them")
    return hints


def hints_by_effect(spec: ToolSpec) -> JSONObject:
    """Return the annotations that follow from a tool's effect."""
    if not spec.is_effect_declared:
        return {"readOnlyHint": False}  # undeclared: MCP then assumes that it may be destructive
    return {
        "readOnlyHint": spec.effect is Effect.READ,
        "destructiveHint": spec.effect is Effect.DESTRUCTIVE,
    }


# Tags and `_meta` of tools, validated at declaration.
#
# Tags are for people, for the rules of a policy and, in `_meta`, for clients.

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
