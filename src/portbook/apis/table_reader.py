"""`Table`: reads a table of the settings key by key, and reports invalid keys by their path."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias, cast

from portbook.canonical import NotJSON, json_bytes
from portbook.schema.engine import BadSchema, validator_for
from portbook.text.did_you_mean import did_you_mean

__all__ = ["Complain", "Table"]

# Returns the exception for the path of a key and its problem, a phrase that follows the key's name.
Complain: TypeAlias = Callable[[tuple[str | int, ...], str], Exception]


class Table:
    """One table of the settings, with its path."""

    def __init__(self, value: Any, path: tuple[str | int, ...], complain: Complain) -> None:
        """Read `value`. Raises the exception of `complain` where it is not a table."""
        self.path = path
        self._complain = complain
        if not isinstance(value, dict):
            raise complain(path, "must be a table")
        self._values = cast("dict[str, Any]", value)

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def wrong(self, key: str | None, sentence: str) -> Exception:
        """Return the exception for a key, or for the table itself."""
        return self._complain(self.path if key is None else (*self.path, key), sentence)

    def only(self, known: Iterable[str]) -> None:
        """Raise for the first key that is not one of `known`, with a suggestion."""
        names = sorted(known)
        for key in self._values:
            if key not in names:
                hint = did_you_mean(key, names, f"valid keys are {', '.join(names)}")
                raise self.wrong(key, f"is not a valid key; {hint}")

    def value(self, key: str) -> Any:
        """Return the value at `key`, or None."""
        return self._values.get(key)

    def text(self, key: str) -> str | None:
        """Return a string that is not empty, or None where the key is missing."""
        value = self._values.get(key)
        if value is not None and (not isinstance(value, str) or not value):
            raise self.wrong(key, "must be a string that is not empty")
        return value

    def choice(self, key: str, choices: Iterable[str]) -> str | None:
        """Return one of `choices`, or None where the key is missing."""
        value = self._values.get(key)
        known = tuple(choices)
        if value is not None and value not in known:
            raise self.wrong(key, f"must be one of {', '.join(known)}")
        return value

    def whole(self, key: str, minimum: int, maximum: int) -> int | None:
        """Return an integer in a range, or None where the key is missing."""
        value = self._values.get(key)
        if value is not None and not (type(value) is int and minimum <= value <= maximum):
            raise self.wrong(key, f"must be a whole number from {minimum} to {maximum}")
        return value

    def switch(self, key: str) -> bool | None:
        """Return true or false, or None where the key is missing."""
        value = self._values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...] | None:
        """Return a list of strings, or None where the key is missing."""
        value = self._values.get(key)
        if value is None:
            return None
        items = cast("list[Any]", value)
        if not isinstance(value, list) or not all(isinstance(item, str) and item for item in items):
            raise self.wrong(key, 'must be a list of strings, such as ["a", "b"]')
        return tuple(items)

    def table(self, key: str) -> Table:
        """Return the table at `key`."""
        return Table(self._values.get(key), (*self.path, key), self._complain)

    def schema(self, key: str) -> Any:
        """Return a JSON Schema that compiles, or None where the key is missing."""
        value = self._values.get(key)
        if value is None or isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise self.wrong(key, "must be a JSON Schema: a table, or true or false")
        try:
            json_bytes(value)
        except NotJSON:
            raise self.wrong(key, "has a value that JSON cannot hold, such as a date") from None
        try:
            validator_for(cast("Any", value))
        except BadSchema as error:
            found = error.findings[0]
            path = (*self.path, key, *_path_in(value, found.pointer))
            raise self._complain(path, f"is not valid in a JSON Schema: {found.message}") from None
        return cast("Any", value)


def _path_in(value: Any, pointer: str) -> tuple[str | int, ...]:
    """Return a JSON Pointer into `value` as a path, as far as the value has it."""
    path: list[str | int] = []
    inner = value
    for segment in pointer.split("/")[1:]:
        key: str | int = segment.replace("~1", "/").replace("~0", "~")
        if isinstance(inner, list) and segment.isdecimal():
            key = int(segment)
        try:
            inner = cast("Any", inner)[key]
        except (LookupError, TypeError):
            break
        path.append(key)
    return tuple(path)
