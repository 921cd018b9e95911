"""Keys of callers: shown once, kept as digests, noticed by whoever runs."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.access.callers import ANONYMOUS, AllowedKey, Callers
from portbook.errors import Refused
from portbook.model import Caller
from portbook.stores.caller_keys import BadKeyRequest, KeptKey, Keys
from portbook.stores.connection_and_clock import Connection
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
