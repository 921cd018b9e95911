"""Keys of callers: shown once, kept as digests, noticed by whoever runs."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.errors import Reason, Refused
from portbook.model import Caller
from portbook.stores import caller_keys
from portbook.stores.caller_keys import (
    ANONYMOUS,
    OPERATOR,
    AllowedKey,
    BadKeyRequest,
    Callers,
    KeptKey,
    Keys,
    digest_of_key,
)
from portbook.stores.connection_clock_and_errors import Connection
from portbook.stores.sqlite_store import Store
from support.approval_world import START, FixedClock


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "portbook.db")
    yield made
    made.close()


@pytest.fixture
def keys(store: Store) -> Keys:
    return Keys(store, FixedClock())


@pytest.mark.covers("002.keys.at-rest")
def test_only_a_digest_of_a_key_is_kept(keys: Keys, tmp_path: Path) -> None:
    made = asyncio.run(keys.create("ada"))
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    [allowed] = keys.allowed()
    assert re.fullmatch(r"pbk_[A-Za-z0-9_-]{43}", made.text)
    assert made.text.encode() not in kept
    assert made.text[4:].encode() not in kept
    assert allowed.sha256.encode() in kept


def test_a_key_opens_what_it_is_for(keys: Keys) -> None:
    made = asyncio.run(keys.create("ada", ["orders.*", "refund"]))
    caller = Callers(stored=keys.allowed).identify(made.text)
    assert caller == Caller("ada", ("orders.*", "refund"))
    assert made.kept == KeptKey(made.kept.id, "ada", ("orders.*", "refund"), START)


def test_no_two_keys_are_alike(keys: Keys) -> None:
    async def create() -> set[str]:
        made = await asyncio.gather(*(keys.create("ada") for _ in range(50)))
        assert len({key.kept.id for key in made}) == 50
        return {key.text for key in made}

    assert len(asyncio.run(create())) == 50


@pytest.mark.covers("002.keys.revocation")
def test_a_running_server_notices_what_another_process_does(keys: Keys, tmp_path: Path) -> None:
    elsewhere = Store(tmp_path / "portbook.db")
    operator = Keys(elsewhere, FixedClock())
    callers = Callers(required=True, stored=keys.allowed)
    assert keys.allowed() == ()  # looked at before there is a file
    made = asyncio.run(operator.create("ada"))
    assert callers.identify(made.text).name == "ada"
    asyncio.run(operator.revoke("ada"))
    with pytest.raises(Refused):
        callers.identify(made.text)
    elsewhere.close()


def test_keys_are_read_again_only_when_something_changed(
    keys: Keys, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    asyncio.run(keys.create("ada"))
    first = keys.allowed()
    reads: list[Any] = []
    monkeypatch.setattr(store, "read", lambda *arguments: reads.append(arguments))
    assert keys.allowed() is first
    assert reads == []


def test_looking_makes_no_file(keys: Keys, tmp_path: Path) -> None:
    assert keys.allowed() == ()
    assert keys.kept() == []
    assert asyncio.run(keys.revoke("ada")) == []
    assert [*tmp_path.iterdir()] == []


def test_a_revoked_key_is_still_listed(keys: Keys) -> None:
    made = asyncio.run(keys.create("ada"))
    [revoked] = asyncio.run(keys.revoke(made.kept.id))
    assert revoked == KeptKey(made.kept.id, "ada", ("*",), START, START)
    assert keys.kept() == [revoked]
    assert keys.allowed() == ()
    assert asyncio.run(keys.revoke(made.kept.id)) == []


def test_a_name_revokes_all_keys_of_a_caller_and_an_id_one(keys: Keys) -> None:
    async def scenario() -> None:
        one, two, other = [(await keys.create(name)).kept for name in ("ada", "ada", "bob")]
        assert [key.id for key in await keys.revoke(two.id)] == [two.id]
        three = (await keys.create("ada")).kept
        assert {key.id for key in await keys.revoke("ada")} == {one.id, three.id}
        assert [key.name for key in keys.allowed()] == [other.name]

    asyncio.run(scenario())


def test_an_id_is_looked_for_before_a_name(keys: Keys) -> None:
    async def scenario() -> None:
        one = (await keys.create("ada")).kept
        await keys.create(one.id)  # a caller who is called like another's key
        assert [key.name for key in await keys.revoke(one.id)] == ["ada"]
        assert [key.name for key in await keys.revoke(one.id)] == [one.id]

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("name", "tools", "sentence"),
    [
        ("", ["*"], "cannot be used"),
        ("a b", ["*"], "cannot be used"),
        ("-a", ["*"], "a letter or a digit first"),
        ("a\n", ["*"], "cannot be used"),
        ("x" * 65, ["*"], "1 to 64"),
        ("\x1b[2J", ["*"], "cannot be used"),
        (ANONYMOUS.name, ["*"], "reserved name"),
        ("ada", [], "needs at least one pattern"),
        ("ada", ["Orders"], "write 'orders'"),
        ("ada", ["*", "a b"], "matches no tool"),
    ],
)
def test_a_key_that_would_mean_nothing_is_not_made(
    name: str, tools: list[str], sentence: str, keys: Keys, tmp_path: Path
) -> None:
    with pytest.raises(BadKeyRequest, match=sentence) as caught:
        asyncio.run(keys.create(name, tools))
    assert "\x1b" not in str(caught.value)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("name", ["a", "ada.lovelace@example", "team+agent-7", "x" * 64])
def test_names_that_people_use_can_be_used(name: str, keys: Keys) -> None:
    assert asyncio.run(keys.create(name)).kept.name == name


def test_randomness_is_an_argument(store: Store) -> None:
    keys = Keys(store, FixedClock(), draw=lambda count: b"\x01" * count)
    made = asyncio.run(keys.create("ada"))
    assert (made.text, made.kept.id) == ("pbk_AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE", "01010101")


def test_a_damaged_row_does_not_open_anything(keys: Keys, store: Store) -> None:
    def damage(connection: Connection) -> None:
        connection.execute("UPDATE caller_key SET sha256 = ''")

    made = asyncio.run(keys.create("ada"))
    store.submit(damage).result()
    assert keys.allowed() == (AllowedKey("ada", ""),)
    with pytest.raises(Refused):
        Callers(stored=keys.allowed).identify(made.text)


# Whose call is it: every combination of what is required, configured and presented.


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
    real = caller_keys.is_same_digest

    def counting(left: str, right: str) -> bool:
        compared.append(left)
        return real(left, right)

    monkeypatch.setattr(caller_keys, "is_same_digest", counting)
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
