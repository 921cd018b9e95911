"""Plain types: strings, numbers, lists and the like, which JSON has too. Pure: no I/O, and no pydantic.

    str  int  float  bool  None  Any  Literal["a", "b"]  list[X]  dict[str, X]  X | None

Tools that take and return nothing else start without pydantic, which takes longer to import than all of
Portbook. Their schemas are the very ones that pydantic generates (a test compares them). A value that does
not fit exactly, such as `1e300` for an `int`, is left to pydantic, so that no rule of it is written twice.
"""

from __future__ import annotations

import inspect
import math
import types
import typing
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast

from portbook.canonical import NotJSON, json_bytes
from portbook.model import JSON, JSONObject
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "Bind",
    "NotPlain",
    "PlainParameters",
    "PlainType",
    "json_copy",
    "plain_parameters",
    "plain_type",
]

# Beyond this, a double does not hold every integer.
_EXACT: Final = 2**53

# From so many items on, it pays to count types.
_LONG: Final = 64

_Convert: TypeAlias = Callable[[Any], Any]
_Copy: TypeAlias = Callable[[_Convert, frozenset[type], Any], Any]


# Converts validated JSON to the arguments of a function.
Bind: TypeAlias = Callable[[JSONObject], dict[str, Any]]


class NotPlain(Exception):
    """A value that is left to pydantic."""


class PlainType(NamedTuple):
    """A type's schema, and how its values are converted. Both conversions raise `NotPlain`."""

    schema: JSONObject
    take: _Convert
    """From JSON, to what a function takes."""
    give: _Convert
    """To JSON, from whatever a function returned."""
    taken: frozenset[type]
    """Of exactly these types, `take` returns every value as it is."""
    given: frozenset[type]
    """The same for `give`."""

    def has_default(self, default: Any) -> bool:
        """Return whether a default is of this type, or None: many write `text: str = None`."""
        if default is None or type(default) in self.taken:
            return True
        try:
            self.take(default)
        except NotPlain:
            return False
        return True


class PlainParameters(NamedTuple):
    """The parameters of a function that takes plain types alone, and their defaults."""

    types: dict[str, PlainType]
    defaults: dict[str, Any]

    def binder(self, fallback: Callable[[], Bind]) -> Bind:
        """Return what converts validated JSON to arguments; what is not plain is left to the `fallback`."""
        defaults = self.defaults
        takes = {name: each.take for name, each in self.types.items()}
        taken = {name: each.taken for name, each in self.types.items()}

        count = len(takes)

        def bind(arguments: JSONObject) -> dict[str, Any]:
            try:
                for name, value in arguments.items():
                    if type(value) not in taken[name]:
                        break
                else:
                    if len(arguments) == count:
                        return arguments
            except KeyError:  # an operator's own schema may allow more than the function takes
                pass  # which is found again
            return convert(arguments)

        def convert(arguments: JSONObject) -> dict[str, Any]:
            values: dict[str, Any] = {**defaults}
            try:
                for name, value in arguments.items():
                    values[name] = takes[name](value)
            except (NotPlain, KeyError):
                return fallback()(arguments)
            return values if len(values) == count else fallback()(arguments)

        return bind

    def schema(self) -> JSONObject:
        """Return the schema of the arguments, its members in the order that pydantic gives them."""
        properties: JSONObject = {name: each.schema for name, each in self.types.items()}
        for name, default in self.defaults.items():
            properties[name] = dict(sorted({**self.types[name].schema, "default": default}.items()))
        schema: JSONObject = {"additionalProperties": False, "properties": properties}
        if required := [name for name in self.types if name not in self.defaults]:
            schema["required"] = cast("Any", required)
        return {**schema, "type": "object"}


def plain_parameters(
    parameters: Iterable[inspect.Parameter], hints: dict[str, Any]
) -> PlainParameters | None:
    """Return parameters of plain types; None where one has another type or default."""
    given = list(parameters)
    found = {each.name: plain_type(hints.get(each.name, Any)) for each in given}
    types = {name: each for name, each in found.items() if each is not None}
    defaults = {each.name: each.default for each in given if each.default is not inspect.Parameter.empty}
    is_plain = len(types) == len(found) and all(map(_is_plain_default, defaults.values()))
    return PlainParameters(types, defaults) if is_plain else None


def plain_type(hint: Any) -> PlainType | None:
    """Return what is known about a plain type; None for any other."""
    if hint is Any:
        return _ANY
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return _UNPARAMETRIZED.get(hint) if isinstance(hint, type) else None
    if origin is Literal:
        return _choice(arguments)
    if origin is list:
        return _holding(arguments[0], _list_of)
    if origin is dict and arguments[0] is str:
        return _holding(arguments[1], _dict_of)
    if origin in (typing.Union, types.UnionType) and arguments[1:] == (type(None),):
        return _holding(arguments[0], _or_none)
    return None


def _is_plain_default(value: Any) -> bool:
    """Return whether a default is one that JSON has too and that nobody can change."""
    if type(value) not in (type(None), str, int, float, bool):
        return False
    try:
        json_bytes(value)
    except NotJSON:  # NaN, half a surrogate pair
        return False
    return True


def _holding(hint: Any, make: Callable[[PlainType], PlainType]) -> PlainType | None:
    inner = plain_type(hint)
    return None if inner is None else make(inner)


def _exactly(kind: type) -> _Convert:
    def convert(value: Any) -> Any:
        if type(value) is not kind:
            raise NotPlain
        return value

    return convert


def _to_int(value: Any) -> Any:
    if type(value) is int:
        return value
    if type(value) is float and value.is_integer() and abs(value) <= _EXACT:
        return int(value)
    raise NotPlain


def _to_float(value: Any) -> Any:
    if type(value) is float:
        return value
    if type(value) is int and abs(value) <= _EXACT:
        return float(value)
    raise NotPlain


def _finite(value: Any) -> Any:
    if type(value) is float and math.isfinite(value):
        return value
    raise NotPlain


def json_copy(value: Any) -> Any:
    """Return a copy of a value that is JSON throughout. A circle ends in a `RecursionError`."""
    kind = type(cast("object", value))
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is dict:
        return _members(json_copy, _CONSTANTS, value)
    return _items(json_copy, _CONSTANTS, value) if kind is list else _finite(value)


def _items(convert: _Convert, kept: frozenset[type], value: Any) -> list[Any]:
    """Return a copy in any case: a function may change what it was given, and the record must not.

    Most lists hold only values that stay as they are (`kept`): one look at their types, without a Python
    frame for each, is a twentieth of the cost of converting them.
    """
    if type(value) is not list:
        raise NotPlain
    items = cast("list[Any]", value)
    if _are_kept(items, kept):
        return items.copy()
    return [convert(item) for item in items]


def _taken_items(convert: _Convert, kept: frozenset[type], value: Any) -> list[Any]:
    """Return a copy, like `_items`, of what was parsed from JSON: it has no subclass of `str`.

    So joining a long list of text tells that it holds nothing else, in half the time of looking at each.
    """
    if kept is _TEXT and type(value) is list and len(cast("list[Any]", value)) >= _LONG:
        items = cast("list[Any]", value)
        with suppress(TypeError):
            "".join(items)
            return items.copy()
    return _items(convert, kept, value)


def _are_kept(items: list[Any], kept: frozenset[type]) -> bool:
    if len(items) < _LONG:
        return kept.issuperset(map(type, items))
    # Most long lists hold one type, which is counted in half the time of looking each up.
    first = cast("type[object]", type(items[0]))
    is_one = first in kept and [*map(type, items)].count(first) == len(items)
    return is_one or kept.issuperset(map(type, items))


def _members(convert: _Convert, kept: frozenset[type], value: Any) -> dict[str, Any]:
    """Return a copy, like `_items`."""
    if type(value) is not dict:
        raise NotPlain
    members = cast("dict[Any, Any]", value)
    if not _TEXT.issuperset(map(type, members)):
        raise NotPlain
    if kept.issuperset(map(type, members.values())):
        return members.copy()
    return {name: convert(item) for name, item in members.items()}


def _or_none_by(convert: _Convert, value: Any) -> Any:
    return None if value is None else convert(value)


def _list_of(inner: PlainType) -> PlainType:
    schema: JSONObject = {"items": inner.schema, "type": "array"}
    return _container(schema, _taken_items, _items, inner)


def _dict_of(inner: PlainType) -> PlainType:
    schema: JSONObject = {"additionalProperties": inner.schema or True, "type": "object"}
    return _container(schema, _members, _members, inner)


def _container(schema: JSONObject, taken: _Copy, given: _Copy, inner: PlainType) -> PlainType:
    take, give = partial(taken, inner.take, inner.taken), partial(given, inner.give, inner.given)
    return PlainType(schema, take, give, _NOTHING, _NOTHING)


def _or_none(inner: PlainType) -> PlainType:
    schema: JSONObject = {"anyOf": [inner.schema, {"type": "null"}]}
    take, give = partial(_or_none_by, inner.take), partial(_or_none_by, inner.give)
    return PlainType(schema, take, give, inner.taken | _NONE, inner.given | _NONE)


def _choice(values: tuple[Any, ...]) -> PlainType | None:
    if not all(type(value) is str for value in values):
        return None
    one_of = cast("list[JSON]", list(values))
    schema: JSONObject = {"const": one_of[0]} if len(values) == 1 else {"enum": one_of}

    def convert(value: Any) -> Any:
        if type(value) is str and value in values:
            return value
        raise NotPlain

    return PlainType({**schema, "type": "string"}, convert, convert, _NOTHING, _NOTHING)


def _exact(name: str, kind: type) -> PlainType:
    convert, kept = _exactly(kind), _TEXT if kind is str else frozenset({kind})
    return PlainType({"type": name}, convert, convert, kept, kept)


_NOTHING: Final[frozenset[type]] = frozenset()
_TEXT: Final[frozenset[type]] = frozenset({str})
_NONE: Final[frozenset[type]] = frozenset({type(None)})
# What JSON has, and nobody can change; a float may be one that JSON does not have.
_CONSTANTS: Final[frozenset[type]] = frozenset({str, int, bool, type(None)})

_ANY: Final = PlainType({}, json_copy, json_copy, _CONSTANTS | {float}, _CONSTANTS)
_UNPARAMETRIZED: Final[dict[type, PlainType]] = {
    str: _exact("string", str),
    int: PlainType({"type": "integer"}, _to_int, _exactly(int), frozenset({int}), frozenset({int})),
    float: PlainType({"type": "number"}, _to_float, _finite, frozenset({float}), _NOTHING),
    bool: _exact("boolean", bool),
    type(None): _exact("null", type(None)),
    list: _list_of(_ANY),
    dict: _dict_of(_ANY),
}
