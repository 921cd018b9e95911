"""`BadSettings`: settings that cannot be used, and how all that is wrong is told at once. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar, cast

__all__ = ["BadSettings", "ProblemList", "read_whole"]


class BadSettings(ValueError):
    """Settings that cannot be used; each of the problems names its place and says what to do."""

    def __init__(self, *problems: str, rest: Any = None) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.rest = rest
        """The settings without the values that are wrong, where a file could be read: more may be wrong."""


class ProblemList:
    """What is wrong with what an operator wrote, all of which is told at once: `with problems:` collects."""

    def __init__(self, *kinds: type[Exception]) -> None:
        """Collect exceptions of these `kinds`."""
        self._kinds = kinds
        self._found: list[Exception] = []

    def __enter__(self) -> None:
        """Begin a block, after which it goes on whatever is wrong."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Note the exception of the block; others than those of the list pass."""
        if not isinstance(error, self._kinds):
            return False
        self._found.append(error)
        return True

    def texts(self) -> list[str]:
        """Return every problem, each once."""
        found = (error.problems if isinstance(error, BadSettings) else (str(error),) for error in self._found)
        return list(dict.fromkeys(text for texts in found for text in texts))

    def raise_all(self) -> None:
        """Raise the exception that was noted, or `BadSettings` with the problems of several."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise BadSettings(*self.texts())


# Everything that is wrong with some tables: they are read again without what was found.


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
