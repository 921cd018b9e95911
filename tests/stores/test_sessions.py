from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

from portbook.clock import SystemClock
from portbook.stores.sessions import KeptSession, SessionStore
from portbook.stores.sqlite import Store


def test_a_session_is_kept_for_others_to_find_and_only_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "portbook.db"

    async def main() -> None:
        store = Store(path)
        sessions = SessionStore(store, SystemClock())
        assert sessions.load("secret") is None
        assert not path.exists()
        await sessions.save("secret", "bound", {"revision": "2025-11-25"})
        await sessions.save("secret", "bound", {"revision": "2025-06-18"})
        other = Store(path)
        found = SessionStore(other, SystemClock()).load("secret")
        assert found == KeptSession("bound", {"revision": "2025-06-18"})
        await sessions.forget("secret")
        assert SessionStore(other, SystemClock()).load("secret") is None
        await sessions.save("secret", "bound", {})
        store.close()
        other.close()

    asyncio.run(main())
    connection = apsw.Connection(str(path))
    assert "secret" not in str(connection.execute("SELECT * FROM session").fetchall())
    connection.close()
