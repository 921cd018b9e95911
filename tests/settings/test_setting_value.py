"""The value of one setting: a wrong item of a list is told at its own place."""

from __future__ import annotations

import pytest

from portbook.settings import BadSettings
from portbook.settings.setting_value import value_of
from support.settings_files import BY_KEY


def test_a_wrong_item_has_its_own_place() -> None:
    setting = BY_KEY["policy.allowed_domains"]
    with pytest.raises(
        BadSettings, match=r"^item 1: policy.allowed_domains must be a list of strings"
    ):
        value_of(setting, ["a", 5], "the list", lambda number: f"item {number}")
    with pytest.raises(BadSettings, match=r"^the list: "):
        value_of(setting, "a", "the list", lambda number: f"item {number}")


def test_a_choice_has_the_nearest_one() -> None:
    with pytest.raises(BadSettings, match=r"must be one of refuse, warn; did you mean warn\?$"):
        value_of(BY_KEY["audit.on_failure"], "warm", "here")
