"""Whose call is it: every combination of what is required, configured and presented."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import pytest

from portbook.callers import ANONYMOUS, AllowedKey, Callers
from portbook.errors import Reason, Refused


def allow(name: str, key: str, *, upper: bool = False) -> AllowedKey:
    digest = hashlib.sha256(key.encode()).hexdigest()
    return AllowedKey(name, digest.upper() if upper else digest)


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
    with pytest.raises(Refused) as raised:
        callers.identify(presented)
    assert raised.value.reason is Reason.UNAUTHORIZED
    assert (raised.value.findings, raised.value.note) == ((), None)


def test_without_anything_said_no_key_is_required_and_everybody_is_anonymous() -> None:
    assert Callers().identify("anything") is ANONYMOUS


@pytest.mark.parametrize("presented", ["first", "third", "wrong", None])
def test_every_configured_key_is_compared_so_that_timing_tells_nothing(
    presented: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[str] = []
    real = hmac.compare_digest

    def counting(left: str, right: str) -> bool:
        compared.append(left)
        return real(left, right)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    keys = [allow(name, name) for name in ("first", "second", "third")]
    try:
        Callers(keys, required=True).identify(presented)
    except Refused:
        assert presented in ("wrong", None)
    assert compared == [key.sha256 for key in keys]


def test_a_key_itself_is_kept_nowhere() -> None:
    callers = Callers([allow("ada", "ada's key")], required=True)
    callers.identify("ada's key")
    assert "ada's key" not in repr([getattr(callers, name) for name in Callers.__slots__])
