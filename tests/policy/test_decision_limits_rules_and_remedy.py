"""What policy says of a call: every rung of the ladder, and that a higher one always wins."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from portbook.errors import Reason
from portbook.policy import Action, Decision, Limits, PolicyInput, decide, read_policy
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect
from support.policy_tables import CALL, case, policy, rule

OPERATION = HttpOperation("orders", "http://127.0.0.1:9000", "GET", "/orders/{id}")
WRITE = CALL._replace(effect=Effect.WRITE)
ELSEWHERE = replace(OPERATION, base_url="https://evil.example")


def said(decision: Decision) -> tuple[str, str, Reason | None]:
    return decision.action.value, decision.rule, decision.reason


ALLOWED = ("allow", "default", None)
DENY_ALL = rule("no", "deny")
ASK_ALL = rule("a person", "ask")
ALLOW_ALL = rule("yes", "allow")


@pytest.mark.covers("002.policy.checks")
@pytest.mark.parametrize(
    ("rules", "limits", "subject", "expected"),
    [
        case("nothing said", (), {}, CALL, ALLOWED),
        case("a declared destination", (), {}, CALL._replace(operation=OPERATION), ALLOWED),
        case(
            "a destination that is not declared", (), {}, CALL._replace(operation=ELSEWHERE),
            ("deny", "allowed_domains", Reason.POLICY_VIOLATION),
        ),
        case(
            "a listed destination", (), {"allowed_domains": ("evil.example",)},
            CALL._replace(operation=ELSEWHERE), ALLOWED,
        ),
        case(
            "a declared destination that is not listed", (), {"allowed_domains": ("evil.example",)},
            CALL._replace(operation=OPERATION), ("deny", "allowed_domains", Reason.POLICY_VIOLATION),
        ),
        case(
            "an empty list", (), {"allowed_domains": ()}, CALL._replace(operation=OPERATION),
            ("deny", "allowed_domains", Reason.POLICY_VIOLATION),
        ),
        case("a function goes nowhere", (), {"allowed_domains": ()}, CALL, ALLOWED),
        case(
            "a listed verb", (), {"allowed_methods": ("get",)}, CALL._replace(operation=OPERATION), ALLOWED
        ),
        case(
            "a verb that is not listed", (), {"allowed_methods": ("POST",)},
            CALL._replace(operation=OPERATION), ("deny", "allowed_methods", Reason.POLICY_VIOLATION),
        ),
        case("a listed effect", (), {"effects": ("read", "write")}, WRITE, ALLOWED),
        case(
            "an effect that is not listed", (ALLOW_ALL,), {"effects": ("read",)}, WRITE,
            ("deny", "effects", Reason.POLICY_VIOLATION),
        ),
        case("as large as the cap", (), {"max_payload_bytes": 13}, CALL, ALLOWED),
        case(
            "larger than the cap", (), {"max_payload_bytes": 12}, CALL,
            ("deny", "max_payload_bytes", Reason.PAYLOAD_TOO_LARGE),
        ),
        case("the last attempt", (), {"max_attempts": 3}, CALL._replace(attempt=3), ALLOWED),
        case(
            "one attempt more", (), {"max_attempts": 3}, CALL._replace(attempt=4),
            ("deny", "max_attempts", Reason.POLICY_VIOLATION),
        ),
        case(
            "redaction missing", (), {"require_redaction": True}, CALL,
            ("deny", "require_redaction", Reason.POLICY_VIOLATION),
        ),
        case("a rule denies", (DENY_ALL,), {}, CALL, ("deny", "no", Reason.POLICY_VIOLATION)),
        case("a rule asks", (ASK_ALL,), {}, CALL, ("ask", "a person", Reason.APPROVAL_REQUIRED)),
        case("a rule allows", (ALLOW_ALL,), {}, CALL, ("allow", "yes", None)),
        case(
            "the default denies", (), {"default": "deny"}, CALL, ("deny", "default", Reason.POLICY_VIOLATION)
        ),
        case(
            "a rule allows what the default denies", (ALLOW_ALL,), {"default": "deny"}, CALL,
            ("allow", "yes", None),
        ),
        case(
            "writes ask", (), {"approval": "writes"}, CALL, ("ask", "approval", Reason.APPROVAL_REQUIRED)
        ),
        case(
            "what destroys asks where writes do", (), {"approval": "writes"},
            CALL._replace(effect=Effect.DESTRUCTIVE), ("ask", "approval", Reason.APPROVAL_REQUIRED),
        ),
        case("reading does not", (), {"approval": "writes"}, CALL._replace(effect=Effect.READ), ALLOWED),
        case(
            "everything asks", (), {"approval": "always"}, CALL._replace(effect=Effect.READ),
            ("ask", "approval", Reason.APPROVAL_REQUIRED),
        ),
        case("a rule spares the asking", (ALLOW_ALL,), {"approval": "always"}, CALL, ("allow", "yes", None)),
        case(
            "rules ask where nothing else does", (ASK_ALL,), {"approval": "never"}, CALL,
            ("ask", "a person", Reason.APPROVAL_REQUIRED),
        ),
    ],
)  # fmt: skip
def test_what_policy_says_of_a_call(
    rules: tuple[Any, ...], limits: dict[str, Any], subject: PolicyInput, expected: tuple[Any, ...]
) -> None:
    assert said(decide(policy(*rules, **limits), subject)) == expected


def only(name: str, action: str, cents: int) -> dict[str, Any]:
    """A rule that other rules do not hide, because it has a condition of its own."""
    return rule(name, action, where={"/cents": {"minimum": cents}})


@pytest.mark.covers("002.policy.precedence")
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_deny_wins_over_ask_and_ask_over_allow_in_whatever_order_they_stand(order: tuple[int, ...]) -> None:
    rules = [only("no", "deny", 1), only("a person", "ask", 2), only("yes", "allow", 3)]
    for left, winner in ((rules, "no"), (rules[1:], "a person"), (rules[2:], "yes")):
        shuffled = [rules[at] for at in order if rules[at] in left]
        assert decide(policy(*shuffled), CALL).rule == winner


def test_no_rule_lifts_a_limit() -> None:
    allowing = policy(ALLOW_ALL, max_payload_bytes=1, allowed_domains=(), max_attempts=1)
    assert decide(allowing, CALL).rule == "max_payload_bytes"
    assert decide(allowing, CALL._replace(payload_bytes=0, attempt=2)).rule == "max_attempts"
    assert decide(allowing, CALL._replace(payload_bytes=0, operation=OPERATION)).rule == "allowed_domains"


def test_a_decision_says_who_made_it_where_and_what_would_change_it() -> None:
    decision = decide(policy(rule("no", "deny", where={"/cents": {"minimum": 1}})), CALL)
    assert decision.place == "test.toml:3"
    assert "/cents" in decision.remedy
    assert decide(policy(max_payload_bytes=1), CALL).place == "test.toml:2"
    for limits in ({}, {"default": "deny"}, {"approval": "always"}, {"max_payload_bytes": 1}):
        assert decide(policy(**limits), CALL).remedy


def test_the_digest_changes_when_a_decision_could_and_not_when_only_lines_do() -> None:
    ask = rule("a person", "ask", where={"/cents": {"minimum": 1}})
    same = read_policy(Limits(), [ask], ["http://127.0.0.1:9000"], lambda _: "elsewhere.toml:99")
    assert policy(ask).digest == same.digest
    others = [
        policy(),
        policy(rule("another", "ask", where={"/cents": {"minimum": 1}})),
        policy(rule("a person", "deny", where={"/cents": {"minimum": 1}})),
        policy(rule("a person", "ask", where={"/cents": {"minimum": 2}})),
        policy(ask, max_attempts=3),
    ]
    assert len({each.digest for each in [*others, same]}) == len(others) + 1


# What a rule matches: the calls that all of its lists match, and no others.


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
