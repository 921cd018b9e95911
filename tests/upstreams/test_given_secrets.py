"""Secrets of servers: those in use are never forgotten, and of earlier ones the latest are kept."""

from __future__ import annotations

import pytest

from portbook.upstreams import secret_values
from portbook.upstreams.secret_values import GivenSecrets


class User:
    """Whoever uses a value."""


def test_a_value_in_use_is_never_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret_values, "_MAX_EARLIER", 3)
    secrets, user = GivenSecrets(), User()
    for number in range(10):
        secrets.learn(user, f"value-of-{number}")
    for number in range(10):
        secrets.learn(User(), f"renewed-{number}")
    known = secrets.values()
    assert [each for each in known if each.startswith("value")] == [f"value-of-{at}" for at in range(10)]
    assert [each for each in known if each.startswith("renewed")][-3:] == [
        f"renewed-{at}" for at in (7, 8, 9)
    ]
    assert len(known) <= 10 + 4


def test_each_new_value_is_noticed_once_and_redacted_from_then_on() -> None:
    noticed: list[str] = []
    secrets, user = GivenSecrets(noticed.append), User()
    assert secrets.redact("it said swordfish-1234") == "it said swordfish-1234"
    for _ in range(2):
        secrets.learn(user, "swordfish-1234")
    assert noticed == ["swordfish-1234"]
    assert "swordfish-1234" not in secrets.redact("it said swordfish-1234")


def test_a_text_is_told_with_a_mark_for_each_and_is_else_as_it_is() -> None:
    secrets, user = GivenSecrets(), User()
    looks = "password=hunter2hunter2"
    assert secrets.hide(looks) == looks
    secrets.learn(user, "swordfish-1234")
    mark = secret_values.GIVEN_SECRET
    assert secrets.hide(looks) == looks
    assert secrets.hide("a swordfish-1234, swordfish-1234 b") == f"a {mark}, {mark} b"
    assert secrets.hide("\\u0073wordfish-1234") == mark
    secrets.learn(user, "another-5678")
    assert secrets.hide("another-5678") == mark
