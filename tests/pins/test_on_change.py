"""What each grade leads to."""

from __future__ import annotations

from itertools import product

import pytest

from portbook.pins.on_change import Grade, OnChange, Reaction


def test_the_defaults_are_those_of_the_settings_reference() -> None:
    found = {grade.value: OnChange().reaction_to([grade]).value for grade in Grade}
    assert found == {
        "words": "accept",
        "annotations": "ask",
        "added": "ask",
        "removed": "accept",
        "narrowed": "ask",
        "widened": "ask",
        "breaking": "block",
    }


@pytest.mark.parametrize(("grade", "reaction"), list(product(Grade, Reaction)))
def test_each_grade_has_a_setting_of_its_own(grade: Grade, reaction: Reaction) -> None:
    assert OnChange(**{grade.value: reaction}).reaction_to([grade]) is reaction


def test_of_several_changes_the_strictest_reaction_counts() -> None:
    on_change = OnChange()
    assert on_change.reaction_to([]) is Reaction.ACCEPT
    assert on_change.reaction_to([Grade.WORDS, Grade.WIDENED]) is Reaction.ASK
    assert on_change.reaction_to([Grade.BREAKING, Grade.WORDS, Grade.WIDENED]) is Reaction.BLOCK


def test_only_what_the_settings_say_counts_as_accepted_by_the_operator() -> None:
    assert not OnChange().is_accepted([Grade.WORDS])
    on_change = OnChange(words=Reaction.ACCEPT, added=Reaction.ACCEPT, widened=Reaction.ASK)
    assert on_change.is_accepted([Grade.WORDS, Grade.ADDED])
    assert not on_change.is_accepted([Grade.WORDS, Grade.WIDENED])
    assert not on_change.is_accepted([Grade.WORDS, Grade.REMOVED])
