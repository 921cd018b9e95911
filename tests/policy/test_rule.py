"""What a rule matches: the calls that all of its lists match, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.policy import Action, PolicyInput, decide
from support.policy_tables import CALL, case, policy, rule


@pytest.mark.parametrize(
    ("conditions", "subject", "expected"),
    [
        case("its tool", {"tools": ["refund"]}, CALL, True),
        case("a pattern of it", {"tools": ["re*"]}, CALL, True),
        case("another tool", {"tools": ["order"]}, CALL, False),
        case("its effect", {"effects": ["write"]}, CALL, True),
        case("another effect", {"effects": ["read", "destructive"]}, CALL, False),
        case("its caller", {"callers": ["a?a"]}, CALL, True),
        case("another caller", {"callers": ["bob"]}, CALL, False),
        case("its session", {"sessions": ["night-*"]}, CALL._replace(session="night-1"), True),
        case("another session", {"sessions": ["night-*"]}, CALL._replace(session="day"), False),
        case("no session", {"sessions": ["night-*"]}, CALL, False),
        case("its kind", {"kinds": ["tool"]}, CALL, True),
        case("another kind", {"kinds": ["resource", "prompt"]}, CALL, False),
        case("one of its tags", {"tags": ["mon*", "x"]}, CALL._replace(tags=("shop", "money")), True),
        case("another tag", {"tags": ["mon*"]}, CALL._replace(tags=("shop",)), False),
        case("no tags", {"tags": ["?"]}, CALL, False),
        case("any tags or none", {"tags": ["*"]}, CALL, True),
        case("all of several", {"tools": ["refund"], "callers": ["ada"]}, CALL, True),
        case("one of several is not enough", {"tools": ["refund"], "callers": ["bob"]}, CALL, False),
    ],
)
def test_a_rule_is_about_the_calls_that_all_of_its_lists_match(
    conditions: dict[str, Any], subject: PolicyInput, *, expected: bool
) -> None:
    decision = decide(policy(rule("no", "deny", **conditions)), subject)
    assert (decision.action is Action.DENY) is expected


def test_a_rule_without_tags_keeps_the_digest_that_approvals_are_bound_to() -> None:
    assert "tags" not in policy(rule("no", "deny")).rules[0].as_data()
    assert policy(rule("no", "deny", tags=["a"])).rules[0].as_data()["tags"] == ["a"]
