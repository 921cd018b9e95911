"""The list of problems: what it collects, what passes, and what it raises."""

from __future__ import annotations

import pytest

from portbook.settings import BadSettings, ProblemList
from portbook.tools.spec import BadTool


def test_a_single_problem_is_raised_as_it_was() -> None:
    problems = ProblemList(BadSettings, BadTool)
    with problems:
        raise BadTool("one")
    with pytest.raises(BadTool, match=r"^one$"):
        problems.raise_all()


def test_several_are_raised_as_one_and_each_is_told_once() -> None:
    problems = ProblemList(BadSettings, BadTool)
    for error in (BadSettings("one", "two"), BadTool("three"), BadTool("three")):
        with problems:
            raise error
    with pytest.raises(BadSettings) as raised:
        problems.raise_all()
    assert raised.value.problems == ("one", "two", "three")


def test_what_is_not_of_its_kinds_passes() -> None:
    problems = ProblemList(BadSettings)
    with pytest.raises(KeyError), problems:
        raise KeyError("x")
    problems.raise_all()  # nothing was noted
