"""Keywords of OpenAPI, of other drafts and of vendors, as those of JSON Schema 2020-12. Pure: no I/O.

Documents hold forms of every draft, and plain mistakes. A value that its keyword cannot have is corrected
where the meaning is clear, and dropped where it is not: the rest of the schema still says something.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, cast

from portbook.canonical import canonical_bytes
from portbook.model import JSONObject

__all__ = ["DROPPED", "renew_bounds", "translated", "with_null"]


class _Dropped:
    """The value of a keyword that is left out."""


DROPPED: Final = _Dropped()

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
# Words that are no types, and what is meant by them. `any` is missing on purpose: it means no type at all.
_MEANT: Final = {
    "bool": "boolean", "byte": "string", "date": "string", "date-time": "string", "datetime": "string",
    "decimal": "number", "dict": "object", "double": "number", "file": "string", "float": "number",
    "int": "integer", "int32": "integer", "int64": "integer", "list": "array", "long": "integer",
    "map": "object", "numeric": "number", "str": "string", "text": "string", "uri": "string", "url": "string",
    "uuid": "string",
}  # fmt: skip
_WHOLE: Final = re.compile(r"[0-9]{1,15}", re.ASCII)
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?", re.ASCII)
# The largest count that every implementation holds exactly.
_MAX_COUNT: Final = 2**53


def translated(keyword: str, value: Any) -> Any:
    """Return the value that `keyword`, which holds no subschema, has in 2020-12; `DROPPED` for none."""
    return _TRANSLATIONS.get(keyword, _none)(value)


def _none(_: Any) -> Any:
    return DROPPED


def _any(value: Any) -> Any:
    return value


def _type(value: Any) -> Any:
    if isinstance(value, str):
        return _one_type(value) or DROPPED
    if not isinstance(value, list):
        return DROPPED
    given = cast("list[Any]", value)
    # One word that may be anything makes the whole list say nothing.
    types = [_one_type(item) if isinstance(item, str) else "null" if item is None else None for item in given]
    if not types or None in types:
        return DROPPED
    return list(dict.fromkeys(types))


def _one_type(word: str) -> str | None:
    known = word.strip().lower()
    return known if known in _TYPES else _MEANT.get(known)


def _names(value: Any) -> Any:
    """Return a list of names; a boolean is the form of Swagger, which the writer reads itself."""
    if not isinstance(value, list):
        return DROPPED
    return list(dict.fromkeys(item for item in cast("list[Any]", value) if isinstance(item, str)))


def _choices(value: Any) -> Any:
    if not isinstance(value, list) or not value:
        return DROPPED
    found: dict[bytes, Any] = {}
    for item in cast("list[Any]", value):
        found.setdefault(canonical_bytes(item), item)
    return list(found.values())


def _count(value: Any) -> Any:
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return DROPPED
    return int(value) if 0 <= value <= _MAX_COUNT and value == int(value) else DROPPED


def _number(value: Any) -> Any:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else DROPPED


def _divisor(value: Any) -> Any:
    number = _number(value)
    return number if number is not DROPPED and number > 0 else DROPPED


def _switch(value: Any) -> Any:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return value if isinstance(value, bool) else DROPPED


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else DROPPED


def _needs(value: Any) -> Any:
    """Return which names each name needs, as `dependentRequired` has them."""
    if not isinstance(value, dict):
        return DROPPED
    pairs = cast("dict[str, Any]", value).items()
    return {name: _names(needed) for name, needed in pairs if isinstance(needed, list)}


_TRANSLATIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "type": _type,
    "required": _names,
    "enum": _choices,
    "const": _any,
    "default": _any,
    **dict.fromkeys(
        (
            "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains",
            "maxContains",
        ),
        _count,
    ),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    "multipleOf": _divisor,
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _switch),
    **dict.fromkeys(("title", "description", "format", "contentEncoding", "contentMediaType"), _text),
    "dependentRequired": _needs,
}  # fmt: skip

# Keywords that allow every value.
_SAYS_NOTHING: Final = frozenset(
    {"title", "description", "default", "deprecated", "readOnly", "writeOnly", "format"}
)


def with_null(value: JSONObject, written: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value that may also be null, where `nullable` of OpenAPI 3.0 says so.

    `x-nullable` is what documents of Swagger 2.0 have instead.
    """
    is_nullable = value.get("nullable") is True or value.get("x-nullable") is True
    if not is_nullable or not written.keys() - _SAYS_NOTHING:
        return written
    kind = written.get("type")
    if kind is None:
        return {"anyOf": [written, {"type": "null"}]}
    kinds = cast("list[str]", kind) if isinstance(kind, list) else [kind]
    written["type"] = kinds if "null" in kinds else [*kinds, "null"]
    if "enum" in written and None not in written["enum"]:
        written["enum"] = [*written["enum"], None]
    return written


def renew_bounds(value: JSONObject, written: dict[str, Any]) -> None:
    """Rewrite the boolean `exclusiveMinimum` and `exclusiveMaximum` of OpenAPI 3.0 as numbers."""
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if value.get(exclusive) is True and inclusive in written:
            written[exclusive] = written.pop(inclusive)
