from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from portbook.clock import SystemClock
from portbook.stores import stored_sessions as module
from portbook.stores.sqlite_store import Store
from portbook.stores.stored_sessions import KeptSession, SessionStore


class Calendar(SystemClock):
    """A clock that is set."""

    def __init__(self) -> None:
        self.today = "2026-01-01T00:00:00.000Z"

    def now(self) -> str:
        return self.today


def test_a_session_is_kept_for_others_to_find_and_only_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "portbook.db"

    async def main() -> None:
        store = Store(path)
        sessions = SessionStore(store, SystemClock())
        assert sessions.load("secret") is None
        assert not path.exists()
        await sessions.begin("secret", "bound", {"revision": "2025-11-25"})
        await sessions.save("secret", lambda _: {"revision": "2025-06-18"})
        other = Store(path)
        found = SessionStore(other, SystemClock()).load("secret")
        assert found == KeptSession("bound", {"revision": "2025-06-18"})
        await sessions.forget("secret")
        assert SessionStore(other, SystemClock()).load("secret") is None
        await sessions.save("secret", lambda _: {})
        assert sessions.load("secret") is None  # what was ended stays so
        await sessions.begin("secret", "bound", {})
        store.close()
        other.close()

    asyncio.run(main())
    connection = apsw.Connection(str(path))
    assert "secret" not in str(connection.execute("SELECT * FROM session").fetchall())
    connection.close()


def test_a_session_is_over_a_week_after_it_was_last_in_use(tmp_path: Path) -> None:
    async def main() -> None:
        clock = Calendar()
        store = Store(tmp_path / "portbook.db")
        sessions = SessionStore(store, clock)
        await sessions.begin("used", "bound", {})
        await sessions.begin("unused", "bound", {})
        clock.today = "2026-01-07T00:00:00.000Z"
        sessions.touch("used")
        await sessions.save("another", lambda _: {})  # written after it
        clock.today = "2026-01-09T00:00:00.000Z"
        assert sessions.load("used") is not None
        assert sessions.load("unused") is None
        await sessions.begin("new", "bound", {})
        assert store.read(lambda it: it.execute("SELECT count(*) FROM session").get, 0) == 2
        store.close()

    asyncio.run(main())


def test_a_caller_has_so_many_sessions_and_the_longest_unused_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MAX_OF_CALLER", 3)

    async def main() -> None:
        clock = Calendar()
        store = Store(tmp_path / "portbook.db")
        sessions = SessionStore(store, clock)
        await sessions.begin("another caller's", "other", {})
        for day in range(1, 6):
            clock.today = f"2026-01-0{day}T00:00:00.000Z"
            await sessions.begin(f"{day}", "bound", {})
        assert [day for day in range(1, 6) if sessions.load(f"{day}") is not None] == [3, 4, 5]
        assert sessions.load("another caller's") is not None
        store.close()

    asyncio.run(main())


def test_a_change_by_any_process_changes_the_version(tmp_path: Path) -> None:
    async def main() -> None:
        store, other = Store(tmp_path / "portbook.db"), Store(tmp_path / "portbook.db")
        sessions, elsewhere = SessionStore(store, SystemClock()), SessionStore(other, SystemClock())
        await sessions.begin("one", "bound", {})
        before = sessions.version()
        assert sessions.version() == before
        await elsewhere.forget("one")
        assert sessions.version() != before
        store.close()
        other.close()

    asyncio.run(main())
