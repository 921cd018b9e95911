"""Everything that is wrong with some tables of the settings: they are read again without what was found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

from portbook.settings import BadSettings

__all__ = ["read_whole"]

_T = TypeVar("_T")
_Path: TypeAlias = tuple[str | int, ...]
_Complain: TypeAlias = Callable[[_Path, str], Exception]

# A person corrects this many before the next look.
_MOST: Final = 100

# Keys that the rest of a table depends on: without a document, every change to its operations is one to none.
_DECISIVE: Final = frozenset({"openapi", "command", "url", "transport"})


def read_whole(
    tables: Mapping[str, Any], read: Callable[[Mapping[str, Any], _Complain], _T], complain: _Complain
) -> _T:
    """Return what `read` makes of `tables`, which are those below one key of the settings.

    Raises `BadSettings` with every problem that it raises: after each, what has it is left out, and the rest
    is read again. What is then missing is no problem of its own; the table that misses it is left out, too.
    """
    found: dict[_Path, BadSettings] = {}
    while True:
        made: list[tuple[Exception, _Path]] = []

        def noting(path: _Path, said: str, made: list[tuple[Exception, _Path]] = made) -> Exception:
            made.append((complain(path, said), path))
            return made[-1][0]

        try:
            result = read(tables, noting)
        except BadSettings as error:
            path = next((path for one, path in made if one is error), ())
            is_missed = path in found  # the key is gone, and its table needs it
            if not any(one[: len(path)] == path for one in found):
                found[path] = error
            left_out = _left_out(path, is_missed=is_missed)
            if len(left_out) < 2 or len(found) >= _MOST:
                break
            tables = _without(tables, left_out[1:])
        else:
            if not found:
                return result
            break
    raise BadSettings(*dict.fromkeys(text for error in found.values() for text in error.problems))


def _left_out(path: _Path, *, is_missed: bool) -> _Path:
    """Return what to leave out for a problem at `path`: its key, or the table that does not go without it."""
    if len(path) > 2 and path[2] in _DECISIVE:
        return path[:2]
    return path[:-1] if is_missed else path


def _without(tables: Mapping[str, Any], path: _Path) -> dict[str, Any]:
    """Return a copy without the key at `path`; an item of a list goes with its list."""
    first, *rest = path
    inner = tables.get(str(first))
    if rest and isinstance(inner, Mapping):
        return {**tables, str(first): _without(cast("Mapping[str, Any]", inner), tuple(rest))}
    return {key: value for key, value in tables.items() if key != first}
