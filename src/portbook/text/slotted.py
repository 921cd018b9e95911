"""`slotted`: classes of data with slots, as `dataclasses` makes them, in a fifth of the time.

A start makes a dozen of them. `dataclasses` writes the text of every method and compiles it. Here one
constructor is compiled for each number of fields, and gets their names. What `dataclasses` knows about the
fields of a class is found out when something asks, so `replace` and `fields` work as with its own classes.

Only the type checker keeps a frozen one from being changed: to do that at run time, too, would take three
times as long to make one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from types import CodeType, FunctionType
from typing import Any, Final, TypeVar, cast, dataclass_transform, overload

__all__ = ["slotted"]

_T = TypeVar("_T")


@overload
def slotted(cls: type[_T], /) -> type[_T]: ...


@overload
def slotted(*, frozen: bool = True, eq: bool = True) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def slotted(cls: Any = None, /, *, frozen: bool = True, eq: bool = True) -> Any:
    """Make a class of data from a class that inherits none, by its annotations.

    With `eq`, two of them are equal if their fields are, but for those declared with `compare=False`.

    Raises `TypeError` where a field without a default follows one that has one.
    """

    def make(cls: type[Any]) -> Any:
        return _slotted(cls, eq=eq, frozen=frozen)

    return make if cls is None else make(cls)


# What every class gets anew.
_ITS_OWN: Final = ("__dict__", "__weakref__")


def _slotted(cls: type[Any], *, eq: bool, frozen: bool) -> Any:
    own: dict[str, Any] = {name: part for name, part in vars(cls).items() if name not in _ITS_OWN}
    annotations: Mapping[str, Any] = own.get("__annotations__", {})
    if not annotations or any(
        "ClassVar" in str(each) or "InitVar" in str(each) for each in annotations.values()
    ):
        raise TypeError(f"{cls.__name__}: a slotted class has fields, and annotates nothing else")
    names = tuple(annotations)
    declared = {name: own.pop(name) for name in names if name in own}
    special: dict[str, Field[Any]] = {
        name: each for name, each in declared.items() if isinstance(each, Field)
    }
    compared = [name for name in names if name not in special or special[name].compare]
    parts: dict[str, Any] = {
        "__slots__": names,
        "__match_args__": tuple(name for name in names if name not in special or special[name].init),
        "__init__": _constructor(cls, names, declared, special),
        "__replace__": replace,
        "__dataclass_fields__": _LateFields(cls),
        **(_comparison(compared, is_hashable=frozen) if eq else {}),
    }
    # What the class has of its own stays, and so does its full name.
    return type(cls.__name__, cls.__bases__, {**parts, **own, "__qualname__": cls.__qualname__})


# Stands for the value of a field that a factory makes.
_FROM_FACTORY: Final = object()


def _constructor(
    cls: type[Any], names: tuple[str, ...], declared: Mapping[str, Any], special: Mapping[str, Field[Any]]
) -> FunctionType:
    """Return `__init__` of a class with these fields, of which some have a default or are `special`."""
    made = {
        name: cast("Callable[[], Any]", each.default_factory)
        for name, each in special.items()
        if each.default_factory is not MISSING
    }
    defaults = {name: each for name, each in declared.items() if name not in special}
    defaults |= {name: each.default for name, each in special.items() if each.default is not MISSING}
    given = tuple(name for name in names if name not in special or special[name].init)
    fixed = {name: value for name, value in defaults.items() if name not in given}
    begun: Any = getattr(cls, "__post_init__", None)

    def complete(self: Any) -> None:
        for name, value in fixed.items():
            setattr(self, name, value)
        for name, make in made.items():
            if name not in given or getattr(self, name) is _FROM_FACTORY:
                setattr(self, name, make())
        if begun is not None:
            begun(self)

    has_more = bool(made or fixed) or begun is not None
    code = _code(len(given), has_more).replace(
        co_varnames=("self", *given),
        co_names=(*given, "complete") if has_more else given,
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    optional = tuple(name for name in given if name in defaults or name in made)
    if given[len(given) - len(optional) :] != optional:
        raise TypeError(f"{cls.__name__}: a field without a default follows {optional[0]}")
    values = tuple(_FROM_FACTORY if name in made else defaults[name] for name in optional)
    init = FunctionType(code, {"complete": complete, "__builtins__": {}}, "__init__", values)
    annotations: dict[str, Any] = vars(cls)["__annotations__"]
    init.__annotations__ = {**{name: annotations[name] for name in given}, "return": None}
    return init


@cache
def _code(count: int, has_more: bool) -> CodeType:
    """Return the code of a constructor with so many fields, and what completes it."""
    named = [f"f{index}" for index in range(count)]
    lines = [f"self.{name} = {name}" for name in named]
    text = f"def __init__(self, {', '.join(named)}):\n " + "\n ".join(
        [*lines, "complete(self)"] if has_more else lines
    )
    scope: dict[str, Any] = {}
    exec(text, scope)  # noqa: S102 - names of ours
    return cast("FunctionType", scope["__init__"]).__code__


def _comparison(names: list[str], *, is_hashable: bool) -> dict[str, Any]:
    """Return the methods that compare these fields; what can change has no hash."""

    def values(each: Any) -> tuple[Any, ...]:
        return tuple(getattr(each, name) for name in names)

    def equals(self: Any, other: object) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return {"__eq__": equals, "__hash__": hashed if is_hashable else None}


class _LateFields:
    """What `dataclasses` knows about the fields of a class, made when it is asked for the first time."""

    def __init__(self, declared: type[Any]) -> None:
        self._declared = declared
        self._fields: dict[str, Field[Any]] | None = None

    def __get__(self, _: object, owner: type[Any]) -> dict[str, Field[Any]]:
        """Return them by name; two threads may both make them."""
        if self._fields is None:
            own = {name: part for name, part in vars(self._declared).items() if name not in _ITS_OWN}
            copied: Any = dataclass(type(owner.__name__, (), own))  # it changes what it is given
            self._fields = {each.name: each for each in fields(copied)}
        return self._fields
