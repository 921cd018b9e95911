"""Our named tuples are those of `typing`, but for the time that they take to make."""

from __future__ import annotations

import ast
import importlib
import pickle
import typing
from pathlib import Path

import pytest

import portbook
from portbook.text.named_tuple import NamedTuple


class Place(NamedTuple):
    """A place."""

    file: str
    line: int = 1
    column: int | None = None

    @property
    def shown(self) -> str:
        """Return it as text."""
        return f"{self.file}:{self.line}"

    @classmethod
    def first(cls, file: str) -> Place:
        return cls(file)


def test_fields_defaults_and_methods_are_those_of_the_class() -> None:
    place = Place("a.py", column=7)
    assert place == ("a.py", 1, 7)
    assert (place.file, place.line, place.column, place.shown) == ("a.py", 1, 7, "a.py:1")
    assert Place.first("b.py")._replace(line=3)._asdict() == {"file": "b.py", "line": 3, "column": None}
    assert repr(place) == "Place(file='a.py', line=1, column=7)"
    assert (Place._fields, Place._field_defaults) == (("file", "line", "column"), {"line": 1, "column": None})


def test_the_class_says_what_it_is() -> None:
    assert (Place.__doc__, Place.__name__, Place.__qualname__) == ("A place.", "Place", "Place")
    assert (Place.__module__, Place.__bases__) == (__name__, (tuple,))
    assert typing.get_type_hints(Place) == {"file": str, "line": int, "column": int | None}


def test_a_value_survives_pickling() -> None:
    assert pickle.loads(pickle.dumps(Place("a.py"))) == Place("a.py")


def test_a_missing_field_is_refused_and_no_field_can_be_set() -> None:
    with pytest.raises(TypeError):
        Place()  # pyright: ignore[reportCallIssue]
    with pytest.raises(AttributeError):
        Place("a.py").line = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_a_field_without_a_default_may_not_follow_one_with_it() -> None:
    with pytest.raises(TypeError, match="follows line"):

        class Turned(NamedTuple):  # pyright: ignore[reportUnusedClass]
            line: int = 1
            file: str  # pyright: ignore[reportGeneralTypeIssues]


def quickly_made() -> typing.Iterator[tuple[str, str, int]]:
    """Every place that makes a named tuple without counting: its module, the class, and how many fields."""
    root = Path(portbook.__file__).parent
    for file in root.rglob("*.py"):
        text = file.read_text()
        if "new_tuple(" not in text:
            continue
        module = ".".join(("portbook", *file.relative_to(root).with_suffix("").parts))
        for within in ast.walk(ast.parse(text)):
            for node in ast.iter_child_nodes(within):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "new_tuple":
                    kind, fields = node.args
                    assert isinstance(fields, ast.Tuple), f"{module}:{node.lineno} cannot be counted"
                    yield module, ast.unparse(kind), len(fields.elts)


def test_a_named_tuple_that_is_made_quickly_gets_as_many_fields_as_it_has() -> None:
    places = list(quickly_made())
    assert len(places) > 5
    for module, name, count in places:
        # One class makes itself.
        kind = getattr(importlib.import_module(module), "Identity" if name == "cls" else name)
        assert count == len(kind._fields), f"{module}: {name}"
