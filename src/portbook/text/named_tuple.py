"""`NamedTuple` as in `typing`, made in half the time: its annotations stay text.

`typing` compiles the text of each annotation, only to refuse what is no expression. So do type checkers, and
a start makes eighty such classes. `typing.get_type_hints` evaluates the text where it is asked to.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Meta(type):
        """Makes a named tuple of the annotated names of a class, with its defaults and methods."""

        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> type:
            """Return the named tuple, which is no subclass of anything but `tuple`.

            Raises `TypeError` where a field without a default follows one that has one.
            """
            fields = namespace.pop("__annotations__", {})
            optional = [field for field in fields if field in namespace]
            if optional != list(fields)[len(fields) - len(optional) :]:
                raise TypeError(f"{name}: a field without a default follows {optional[0]}")
            defaults = [namespace.pop(field) for field in optional]
            made = namedtuple(name, fields, defaults=defaults, module=namespace.pop("__module__"))  # noqa: PYI024
            made.__annotations__ = made.__new__.__annotations__ = fields
            for key, value in namespace.items():
                setattr(made, key, value)
            return made

    _BASE = type.__new__(_Meta, "NamedTuple", (), {})

    class _NamedTuple:
        """Stands among the bases of a class; `_Meta` makes the class."""

        def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type]:
            return (_BASE,)

    NamedTuple = _NamedTuple()
