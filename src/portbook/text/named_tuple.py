"""`NamedTuple` as in `typing`, made in a third of the time: a start makes eighty such classes.

`typing` compiles the text of each annotation, only to refuse what is no expression; type checkers do that,
too. Here annotations stay text, and `typing.get_type_hints` evaluates it where it is asked to. `collections`
compiles a constructor for each class. Here one is compiled for each number of fields, and gets their names.
All classes share their other methods and the descriptors of their fields.
"""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple", "new_tuple"]

# Makes a named tuple of all its fields, which are not counted, in a sixth of the time that its constructor
# takes: for those that every call makes. A test counts the fields at each place.
new_tuple: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    # What reads a field of a named tuple in native code; it has no name of its own.
    _Field = type(namedtuple("_One", "field").field)  # noqa: PYI024

    @cache
    def _field(index: int) -> Any:
        return _Field(index, f"Alias for field number {index}")

    @cache
    def _constructor(count: int) -> CodeType:
        """Return the code of a constructor with so many fields."""
        names = "".join(f"f{index}, " for index in range(count))
        return eval(f"lambda _cls, {names}: _tuple_new(_cls, ({names}))").__code__  # noqa: S307 - names of ours

    _GLOBALS = {"_tuple_new": tuple.__new__, "__builtins__": {}, "__name__": __name__}

    def _new(name: str, fields: tuple[str, ...], defaults: tuple[Any, ...]) -> FunctionType:
        code = _constructor(len(fields)).replace(
            co_varnames=("_cls", *fields), co_name="__new__", co_qualname=f"{name}.__new__"
        )
        return FunctionType(code, _GLOBALS, "__new__", defaults)

    @classmethod
    def _make(cls: type[Any], iterable: Any) -> Any:
        """Make one from a sequence or an iterable."""
        made = tuple.__new__(cls, iterable)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self: Any, /, **changed: Any) -> Any:
        """Return a new one with some fields replaced."""
        made = tuple.__new__(type(self), map(changed.pop, self._fields, self))
        if changed:
            raise ValueError(f"Got unexpected field names: {[*changed]!r}")
        return made

    def _asdict(self: Any) -> dict[str, Any]:
        """Return the fields by their names."""
        return dict(zip(self._fields, self, strict=True))

    def _repr(self: Any) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def _getnewargs(self: Any) -> tuple[Any, ...]:
        return tuple(self)

    _SHARED = {
        "__slots__": (),
        "_make": _make,
        "_replace": _replace,
        "__replace__": _replace,
        "_asdict": _asdict,
        "__repr__": _repr,
        "__getnewargs__": _getnewargs,
    }

    class _Meta(type):
        """Makes a named tuple of the annotated names of a class, with its defaults and methods."""

        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            """Return the named tuple, which is no subclass of anything but `tuple`.

            Raises `TypeError` where a field without a default follows one that has one.
            """
            annotations = namespace.setdefault("__annotations__", {})
            fields = tuple(annotations)
            optional = tuple(field for field in fields if field in namespace)
            if optional != fields[len(fields) - len(optional) :]:
                raise TypeError(f"{name}: a field without a default follows {optional[0]}")
            defaults = {field: namespace.pop(field) for field in optional}
            new = _new(name, fields, tuple(defaults.values()))
            new.__annotations__ = annotations
            parts = {
                **_SHARED,
                "__new__": new,
                "__match_args__": fields,
                "_fields": fields,
                "_field_defaults": defaults,
                **{field: _field(index) for index, field in enumerate(fields)},
            }
            return type(name, (tuple,), parts | namespace)

    _BASE = type.__new__(_Meta, "NamedTuple", (), {})

    class _NamedTuple:
        """Stands among the bases of a class; `_Meta` makes the class."""

        def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
            return (_BASE,)

    NamedTuple = _NamedTuple()
