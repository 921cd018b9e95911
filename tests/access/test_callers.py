"""Whose call is it: every combination of what is required, configured and presented."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from portbook.access.callers import ANONYMOUS, OPERATOR, AllowedKey, Callers, digest_of_key
from portbook.errors import Reason, Refused
from portbook.model import Caller


def allow(name: str, key: str, *, upper: bool = False) -> AllowedKey:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return AllowedKey(name, digest.upper() if upper else digest)


def refusal(ask: Any, key: str | None) -> Refused:
    with pytest.raises(Refused) as raised:
        ask(key)
    return raised.value


ONE = [allow("ada", "ada's key")]
TWO = [allow("ada", "ada's key"), allow("bob", "bob's key")]
LOUD = [allow("ada", "ada's key", upper=True)]
ACCENTED = [allow("zoë", "schlüssel")]
REFUSED = None


def case(
    name: str, *, required: bool, configured: list[AllowedKey], presented: str | None, owner: str | None
) -> Any:
    return pytest.param(required, configured, presented, owner, id=name)


@pytest.mark.parametrize(
    ("required", "configured", "presented", "owner"),
    [
        case("nothing at all", required=False, configured=[], presented=None, owner="anonymous"),
        case("a key that nobody asked for", required=False, configured=[], presented="x", owner="anonymous"),
        case("an empty key nobody asked for", required=False, configured=[], presented="", owner="anonymous"),
        case(
            "no key where one may be given", required=False, configured=ONE, presented=None, owner="anonymous"
        ),
        case("the right key, not needed", required=False, configured=ONE, presented="ada's key", owner="ada"),
        case("a wrong key is not no key", required=False, configured=ONE, presented="wrong", owner=REFUSED),
        case("an empty key is not no key", required=False, configured=ONE, presented="", owner=REFUSED),
        case("none configured, none given", required=True, configured=[], presented=None, owner=REFUSED),
        case("none configured, one given", required=True, configured=[], presented="x", owner=REFUSED),
        case(
            "none configured, an empty one given", required=True, configured=[], presented="", owner=REFUSED
        ),
        case("a key is needed", required=True, configured=ONE, presented=None, owner=REFUSED),
        case("a wrong key", required=True, configured=ONE, presented="wrong", owner=REFUSED),
        case("the right key", required=True, configured=ONE, presented="ada's key", owner="ada"),
        case("the first of two", required=True, configured=TWO, presented="ada's key", owner="ada"),
        case("the second of two", required=True, configured=TWO, presented="bob's key", owner="bob"),
        case("another case", required=True, configured=ONE, presented="ADA'S KEY", owner=REFUSED),
        case("a space too many", required=True, configured=ONE, presented="ada's key ", owner=REFUSED),
        case("a part of the key", required=True, configured=ONE, presented="ada's", owner=REFUSED),
        case("its digest", required=True, configured=ONE, presented=ONE[0].sha256, owner=REFUSED),
        case("its owner's name", required=True, configured=ONE, presented="ada", owner=REFUSED),
        case("a digest in upper case", required=True, configured=LOUD, presented="ada's key", owner="ada"),
        case("letters beyond ASCII", required=True, configured=ACCENTED, presented="schlüssel", owner="zoë"),
        case("a lone surrogate", required=True, configured=ONE, presented="\ud800", owner=REFUSED),
    ],
)
def test_a_key_tells_its_owner_or_the_call_is_refused(
    required: bool, configured: list[AllowedKey], presented: str | None, owner: str | None
) -> None:
    callers = Callers(configured, required=required)
    if owner is not REFUSED:
        assert callers.identify(presented).name == owner
        return
    refused = refusal(callers.identify, presented)
    assert refused.reason is Reason.UNAUTHORIZED
    assert (refused.findings, refused.note, refused.details) == ((), None, {})


def test_without_anything_said_no_key_is_required_and_everybody_is_anonymous() -> None:
    assert Callers().identify("anything") is ANONYMOUS


@pytest.mark.parametrize("presented", ["first", "third", "wrong", ""])
def test_every_configured_and_stored_key_is_compared_so_that_timing_tells_nothing(
    presented: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    real = hmac.compare_digest

    def counting(left: str, right: str) -> bool:
        compared.append(left)
        return real(left, right)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    keys = [allow(name, name) for name in ("first", "second", "third")]
    try:
        Callers(keys[:2], required=True, stored=lambda: (keys[2],)).identify(presented)
    except Refused:
        assert presented in ("wrong", "")
    assert compared == [key.sha256 for key in keys]


def test_a_key_itself_is_kept_nowhere() -> None:
    callers = Callers([allow("ada", "ada's key")], required=True, operator_key="the operator's key")
    callers.identify("ada's key")
    callers.identify_operator("the operator's key")
    kept = repr([getattr(callers, name) for name in Callers.__slots__])
    assert "ada's key" not in kept
    assert "the operator's key" not in kept


def test_a_key_is_for_the_tools_that_it_names() -> None:
    key = AllowedKey("ada", digest_of_key("ada's key"), ("orders.*", "look"))
    assert Callers([key]).identify("ada's key") == Caller("ada", ("orders.*", "look"))
    assert Callers(ONE).identify("ada's key").tools == ("*",)


def test_stored_keys_are_asked_for_at_every_call_so_that_a_revoked_one_is_refused_at_once() -> None:
    stored = {"bob": allow("bob", "bob's key")}
    callers = Callers(ONE, required=True, stored=lambda: tuple(stored.values()))
    assert [callers.identify(key).name for key in ("ada's key", "bob's key")] == ["ada", "bob"]
    stored.clear()
    assert callers.identify("ada's key").name == "ada"
    assert refusal(callers.identify, "bob's key").reason is Reason.UNAUTHORIZED


def test_a_stored_key_is_a_key_like_a_configured_one_so_that_a_wrong_one_is_refused() -> None:
    callers = Callers(stored=lambda: (allow("bob", "bob's key"),))
    assert callers.identify(None) is ANONYMOUS
    assert refusal(callers.identify, "wrong").reason is Reason.UNAUTHORIZED


OPERATORS_KEY = "the operator's key"


@pytest.mark.covers("002.callers.operator")
@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("configured", [[], ONE], ids=["no keys", "a key"])
def test_an_operators_key_is_not_a_callers_key_and_the_other_way_round(
    required: bool, configured: list[AllowedKey]
) -> None:
    callers = Callers(configured, required=required, operator_key=OPERATORS_KEY)
    assert callers.identify_operator(OPERATORS_KEY) is OPERATOR
    assert refusal(callers.identify, OPERATORS_KEY).reason is Reason.UNAUTHORIZED
    for key in ("ada's key", "wrong", "", None, digest_of_key(OPERATORS_KEY)):
        assert not callers.is_operator(key)
        assert refusal(callers.identify_operator, key).reason is Reason.UNAUTHORIZED


def test_an_operators_key_that_was_allowed_as_a_callers_too_makes_no_calls() -> None:
    callers = Callers([allow("ada", OPERATORS_KEY)], operator_key=OPERATORS_KEY)
    assert refusal(callers.identify, OPERATORS_KEY).reason is Reason.UNAUTHORIZED


@pytest.mark.parametrize("operator_key", [None, ""])
def test_without_an_operators_key_nobody_is_the_operator(operator_key: str | None) -> None:
    callers = Callers(operator_key=operator_key)
    for key in ("", "anything", None):
        assert refusal(callers.identify_operator, key).reason is Reason.UNAUTHORIZED


def test_the_operator_sees_no_tools() -> None:
    assert OPERATOR.tools == ()


def test_a_key_of_the_settings_needs_nothing_of_the_store() -> None:
    def away() -> tuple[AllowedKey, ...] | None:
        raise OSError("the database is away")

    callers = Callers(ONE, required=True, stored=away)
    assert callers.identify("ada's key").name == "ada"
    with pytest.raises(OSError, match="away"):
        callers.identify("bob's key")
