"""Every text of a definition that a model may read, with its place. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from portbook.model import JSON
from portbook.schema.violation_wording import whole_pointer

__all__ = ["DefinedText", "texts_of"]

# Deeper than any schema that a validator takes.
_MAX_DEPTH: Final = 200

# Pictures are no text, and their data would be taken for hidden text.
_NOT_READ: Final = frozenset({"icons"})


class DefinedText(NamedTuple):
    """A text of a definition."""

    pointer: str
    text: str
    is_name: bool = False
    """Whether it is the name of a member; its place is then that of the member."""


def texts_of(name: str, definition: Mapping[str, JSON]) -> Iterator[DefinedText]:
    """Yield the name of a definition, and every text and every name of a member in it."""
    if name:
        yield DefinedText("/name", name, is_name=True)
    for part, value in definition.items():
        if part not in _NOT_READ and part != "name":
            yield from _below((part,), value)


def _below(path: tuple[str | int, ...], value: JSON) -> Iterator[DefinedText]:
    if isinstance(value, str):
        yield DefinedText(whole_pointer(path), value)
    if len(path) > _MAX_DEPTH:
        return
    if isinstance(value, dict):
        for name, each in value.items():
            yield DefinedText(whole_pointer((*path, name)), name, is_name=True)
            yield from _below((*path, name), each)
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _below((*path, index), each)
