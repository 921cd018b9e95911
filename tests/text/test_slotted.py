"""Our classes of data are those of `dataclasses`, but for the time that they take to make."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
import typing
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from portbook.text.slotted import slotted


def declared() -> typing.Any:
    class Declared:
        """What both make a class of."""

        name: str
        size: int = 3
        parts: list[str] = field(default_factory=list[str])
        seen: dict[str, int] = field(default_factory=dict[str, int], init=False)
        note: str = field(default="", compare=False)

        @property
        def shown(self) -> str:
            """Return it as text."""
            return f"{self.name}:{self.size}"

    return Declared


Theirs: typing.Any = dataclass(slots=True, repr=False)(declared())
Ours: typing.Any = slotted(frozen=False)(declared())


@slotted
class Place:
    """A place."""

    file: str
    line: int = 1

    def __post_init__(self) -> None:
        """Raise `ValueError` for a line that is none."""
        if self.line < 1:
            raise ValueError(self.line)


@slotted(eq=False)
class Thing:
    file: str


def test_what_both_make_of_a_class_takes_the_same_arguments_and_has_the_same_fields() -> None:
    said = inspect.signature(Theirs.__init__)
    assert list(inspect.signature(Ours.__init__).parameters) == list(said.parameters)
    assert Ours.__slots__ == Theirs.__slots__
    assert Ours.__match_args__ == Theirs.__match_args__
    names = [[each.name for each in dataclasses.fields(one)] for one in (Ours, Theirs)]
    assert names[0] == names[1] == ["name", "size", "parts", "seen", "note"]
    assert (Ours.__doc__, Ours.__name__, Ours.__module__) == (Theirs.__doc__, Theirs.__name__, __name__)
    assert typing.get_type_hints(Place) == {"file": str, "line": int}


@pytest.mark.parametrize(
    ("given", "named"),
    [
        (("a",), {}),
        (("a", 4), {"parts": ["b"]}),
        ((), {"name": "a", "note": "c"}),
        (("a", 1, ["x"], "n"), {}),
    ],
)
def test_what_both_make_holds_the_same(given: tuple[object, ...], named: dict[str, object]) -> None:
    ours, theirs = Ours(*given, **named), Theirs(*given, **named)
    assert [getattr(ours, name) for name in Ours.__slots__] == [
        getattr(theirs, name) for name in Ours.__slots__
    ]
    assert ours.shown == theirs.shown
    assert ours.parts is not Ours("a").parts
    assert not hasattr(ours, "__dict__")


@pytest.mark.parametrize(("given", "named"), [((), {}), (("a",), {"else": 1}), (("a", 1, [], "n", 5), {})])
def test_arguments_that_do_not_fit_are_refused_by_both(
    given: tuple[object, ...], named: dict[str, object]
) -> None:
    for made in (Ours, Theirs):
        with pytest.raises(TypeError, match=r"Declared\.__init__\(\)"):
            made(*given, **named)


def test_two_are_equal_if_their_compared_fields_are() -> None:
    assert Ours("a", note="x") == Ours("a", note="y")
    assert Ours("a") != Ours("b")
    assert Ours("a") != Theirs("a")
    assert hash(Place("a")) == hash(Place("a", 1))
    assert Thing("a") != Thing("a")


def test_one_can_be_replaced_copied_and_pickled() -> None:
    place = Place("a", 2)
    assert dataclasses.is_dataclass(place)
    assert dataclasses.replace(place, line=5) == Place("a", 5)
    assert copy.copy(place) == pickle.loads(pickle.dumps(place)) == place


def test_what_a_class_does_after_its_construction_is_done() -> None:
    with pytest.raises(ValueError, match="0"):
        Place("a", 0)
    with pytest.raises(ValueError, match="0"):
        dataclasses.replace(Place("a"), line=0)


def test_threads_that_ask_for_the_fields_at_once_all_get_them() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as threads:
            for _ in range(20):
                made = slotted(frozen=False)(declared())
                for each in [threads.submit(dataclasses.replace, made("a"), size=5) for _ in range(8)]:
                    assert each.result().size == 5
                assert dataclasses.replace(made("a", parts=["b"]), name="c").parts == ["b"]
    finally:
        sys.setswitchinterval(before)


def test_what_can_change_has_no_hash_and_what_a_class_defines_itself_stays() -> None:
    @slotted
    class Own:
        name: str
        kind: str = field(default="fixed", init=False)
        rank: int = field(compare=False, default=0)

        def __hash__(self) -> int:
            return 7

    assert Ours.__hash__ is None
    assert hash(Own("a")) == 7
    assert (Own("a", 4).kind, Own("a", 4).rank) == ("fixed", 4)
    assert Own.__qualname__.endswith("<locals>.Own")


@pytest.mark.parametrize("annotations", [{}, {"name": "ClassVar[str]"}, {"name": "InitVar[str]"}])
def test_a_class_without_fields_or_with_what_is_none_is_refused(annotations: dict[str, str]) -> None:
    with pytest.raises(TypeError, match="Wrong: a slotted class has fields"):
        slotted(type("Wrong", (), {"__annotations__": annotations}))


def test_a_field_without_a_default_may_not_follow_one_with_it() -> None:
    def make() -> None:
        class Wrong:
            first: int = 1
            second: int

        slotted(Wrong)

    with pytest.raises(TypeError, match="Wrong: a field without a default follows first"):
        make()
