"""Lets a whole run take a table of cases for one test, which names each case that fails.

What pytest does around a test, in each process of the run that collects it, takes longer than most cases do.
A table is taken for one test only if that makes no difference: what its cases share anyway is all that they
are given, and no mark is about a single case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import wraps
from inspect import Parameter, Signature, iscoroutinefunction, isfunction, signature
from time import monotonic
from typing import Any, Final, cast

import pytest

__all__ = ["TablesAsOne"]

_OF_A_TEST: Final = frozenset({"covers"})
"""The marks that a table keeps."""

_SECONDS: Final = 600  # for all cases of a table; a single test has 180, which is in pyproject.toml


class TablesAsOne:
    """Makes one item of a function with cases."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: pytest.Module | pytest.Class, name: str, obj: object
    ) -> pytest.Function | None:
        if not name.startswith("test_") or not isfunction(obj) or not isinstance(collector, pytest.Module):
            return None
        marks: list[pytest.Mark] = [getattr(each, "mark", each) for each in getattr(obj, "pytestmark", ())]
        columns = [_Column(mark) for mark in marks if mark.name == "parametrize"]
        kept = [mark for mark in marks if mark.name != "parametrize"]
        if not columns or not all(each.is_plain for each in columns):
            return None
        if hasattr(obj, "is_hypothesis_test") or iscoroutinefunction(obj):
            return None
        item = pytest.Function.from_parent(  # pyright: ignore[reportUnknownMemberType]
            collector, name=name, callobj=_all_cases(obj, columns, kept)
        )
        # A mark of the whole file is about each case, too.
        if {mark.name for mark in item.iter_markers()} - _OF_A_TEST or not _is_shared(item):
            return None
        item.add_marker(pytest.mark.timeout(_SECONDS))
        return item


class _Column:
    """The values of one `parametrize`."""

    def __init__(self, mark: pytest.Mark) -> None:
        self.is_plain = len(mark.args) == 2 and set(mark.kwargs) <= {"ids"}
        if self.is_plain:
            names, values = mark.args
            self.names: list[str] = (
                [each.strip() for each in names.split(",") if each.strip()]
                if isinstance(names, str)
                else list(names)
            )
            self._values: Iterable[Any] = values
            self._ids: Callable[[Any], object] | Sequence[object] | None = mark.kwargs.get("ids")
            # What can be read only once is left to pytest, and so is what has no case, or marks of its own.
            self.is_plain = (
                (isinstance(names, str) or len(self.names) > 1)
                and isinstance(values, Sequence | dict | frozenset | set)
                and len(cast("Sequence[Any]", values)) > 0
                and not any(each.marks for each in cast("Iterable[Any]", values) if _is_parameter_set(each))
            )

    def rows(self) -> Iterator[tuple[Callable[[], str], dict[str, Any]]]:
        """Yield each case, with a function that names it as pytest does."""
        for place, row in enumerate(self._values):
            own, given = (row.id, row.values) if _is_parameter_set(row) else (None, row)
            if not _is_parameter_set(row) and len(self.names) == 1:
                given = (row,)
            yield (
                lambda place=place, own=own, given=given: self._name(place, own, given),
                dict(zip(self.names, given, strict=True)),
            )

    def _name(self, place: int, own: str | None, given: Sequence[Any]) -> str:
        if own is not None:
            return own
        if isinstance(self._ids, Sequence) and self._ids[place] is not None:
            return str(self._ids[place])
        return "-".join(
            self._name_of(name, place, value) for name, value in zip(self.names, given, strict=True)
        )

    def _name_of(self, name: str, place: int, value: object) -> str:
        if callable(self._ids) and (named := self._ids(value)) is not None:
            value = named
        if isinstance(value, str | bytes | int | float | complex | bool | None):
            return value.decode("latin-1") if isinstance(value, bytes) else str(value)
        return str(getattr(value, "__name__", f"{name}{place}"))


def _is_parameter_set(row: object) -> bool:
    return isinstance(row, type(pytest.param()))


def _all_cases(
    function: Callable[..., None], columns: Sequence[_Column], marks: list[pytest.Mark]
) -> Callable[..., None]:
    """Return a test that runs a function with all its cases, and then says which of them failed."""

    @wraps(function)
    def test(**shared: Any) -> None:
        count, began = 0, monotonic()
        failed: list[BaseException] = []
        skipped: list[str] = []
        # As pytest has it, the first row of what stands next to the function meets all of what stands above.
        for row in itertools.product(*(column.rows() for column in columns)):
            count += 1
            given = {name: value for _, values in row for name, value in values.items()}
            try:
                function(**shared, **given)
            except (Exception, pytest.fail.Exception) as exception:
                exception.add_note(f"in case {_named(row)}")
                failed.append(exception)
                if monotonic() - began >= _SECONDS:  # it hung: the timer that ended it is the last
                    break
            except pytest.skip.Exception as exception:
                skipped.append(f"{_named(row)} {exception.msg}")
        if failed:
            message = f"{len(failed)} of {count} cases failed; each is below, with its name"
            raise BaseExceptionGroup(message, failed)
        if skipped:
            pytest.skip(f"{len(skipped)} of {count} cases: {', '.join(skipped)}")

    named = {name for column in columns for name in column.names}
    rest = [each for each in signature(function).parameters.values() if each.name not in named]
    # By keyword, which is how pytest gives fixtures.
    made: Any = test
    made.__signature__ = Signature([each.replace(kind=Parameter.KEYWORD_ONLY) for each in rest])
    made.pytestmark = marks
    return test


def _named(row: Sequence[tuple[Callable[[], str], object]]) -> str:
    return f"[{'-'.join(name() for name, _ in row)}]"


def _is_shared(item: pytest.Function) -> bool:
    """Whether all fixtures of a test are those of its file at least, and the same for each case."""
    found: dict[str, Sequence[Any]] = getattr(item, "_fixtureinfo").name2fixturedefs  # noqa: B009 - pytest's own
    # Those of the file may take the request itself, which has no definition; a test that does is not shared.
    return "request" not in signature(item.obj).parameters and all(
        each.scope != "function" and each.params is None
        for name in item.fixturenames
        for each in found.get(name, ())
    )
