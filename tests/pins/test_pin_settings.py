"""`trust` and `on_change` in the settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from portbook.apis.table_reader import Table
from portbook.pins.on_change import OnChange, PinSettings, Reaction, read_pin_settings


def read(given: Mapping[str, Any]) -> PinSettings:
    def complain(path: tuple[str | int, ...], problem: str) -> Exception:
        return ValueError(f"{'.'.join(map(str, path))} {problem}")

    return read_pin_settings(Table(given, ("mcp", "github"), complain))


def test_without_settings_a_person_approves() -> None:
    assert read({}) == PinSettings("lock", OnChange())


def test_what_is_not_said_stays_as_it_is() -> None:
    found = read({"trust": "first-use", "on_change": {"words": "block", "breaking": "accept"}})
    assert found.trust == "first-use"
    assert found.on_change == OnChange(words=Reaction.BLOCK, breaking=Reaction.ACCEPT)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"trust": "always"}, "mcp.github.trust must be"),
        ({"on_change": "ask"}, "mcp.github.on_change must be a table"),
        ({"on_change": {"widend": "ask"}}, "mcp.github.on_change.widend is not a valid key; did you mean"),
        ({"on_change": {"widened": "maybe"}}, "mcp.github.on_change.widened must be"),
    ],
)
def test_a_mistake_is_named(given: Mapping[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=r"^mcp\.github") as caught:
        read(given)
    assert str(caught.value).startswith(message)
