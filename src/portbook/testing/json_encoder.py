"""JSON of what a test gives; what JSON cannot hold is named by its place and its type. Pure: no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, cast

from portbook.canonical import NotJSON, json_bytes

__all__ = ["json_of"]

# Where a request has the arguments of its call: what a test passed by name.
_ARGUMENTS: Final = "/params/arguments"

# Deeper than any message that is sent; a value that contains itself ends here.
_MAX_DEPTH: Final = 250


def json_of(message: object) -> bytes:
    """Return `message` as compact JSON.

    Raises `NotJSON` for what JSON cannot hold; the message has its JSON Pointer and its Python type.
    """
    try:
        return json_bytes(cast("Any", message))
    except NotJSON:
        flaw = next(_flaws(message, "", _MAX_DEPTH), None)
        if flaw is None:
            raise
        pointer, problem = flaw
    if pointer.startswith(f"{_ARGUMENTS}/"):
        pointer = f"argument {pointer.removeprefix(_ARGUMENTS)}"
    raise NotJSON(f"{pointer or '(root)'}: {problem}")


def _flaws(value: Any, pointer: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield the place of each part that JSON cannot hold, and what it is."""
    if depth == 0:
        yield pointer[:80], "nested too deeply"
    elif type(value) is dict:
        for key, each in cast("dict[Any, Any]", value).items():
            if type(key) is str:
                yield from _flaws(each, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", depth - 1)
            else:
                yield pointer, f"a key is {_type_of(key)}; JSON has keys of str alone"
    elif type(value) in (list, tuple):
        for index, each in enumerate(cast("list[Any]", value)):
            yield from _flaws(each, f"{pointer}/{index}", depth - 1)
    elif type(value) is float:
        if not math.isfinite(value):
            yield pointer, "JSON has no number that is not finite"
    elif not _is_json(value):
        yield pointer, f"JSON cannot hold this {_type_of(value)}; convert it first"


def _is_json(value: Any) -> bool:
    try:
        json_bytes(value)
    except NotJSON:
        return False
    return True


def _type_of(value: Any) -> str:
    kind = cast("type[object]", type(value))
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
