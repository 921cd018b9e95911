"""`portbook store`: what is in it, moving it to PostgreSQL, and a restored backup that reopens nothing."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from portbook.access.approval_state_and_binding import State
from portbook.clock import SystemClock
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.migrations import TABLES_VERSION
from portbook.stores.postgres.postgres_store import PostgresStore
from portbook.stores.sqlite_store import Store
from portbook.stores.store_port import StorePort
from support.approval_world import ASK, approved, asked, for_order, refusal_of, why
from support.portbook_process import Finished, environment, run
from support.pseudo_terminal import on_a_terminal


def data(finished: Finished, code: int = 0) -> Any:
    assert finished.code == code, finished.err
    return json.loads(finished.out)


def store_at(folder: Path, url: str | None) -> StorePort:
    return Store(folder / "portbook.db") if url is None else PostgresStore(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """The address of a store that the settings in the folder name; None where it is a file."""
    if request.param == "sqlite":
        return None
    url = str(request.getfixturevalue("postgres_schema"))
    (tmp_path / "portbook.toml").write_text(f'[store]\nurl = "{url}"\n')
    return url


def test_the_tables_are_made_shown_and_checked(tmp_path: Path, url: str | None) -> None:
    before = data(run("store", "status", cwd=tmp_path), code=1)
    assert (before["tables_version"], before["is_current"]) == (0, False)
    assert data(run("store", "migrate", "--json", cwd=tmp_path)) == {"before": 0, "after": TABLES_VERSION}
    assert run("keys", "create", "ada", cwd=tmp_path).code == 0
    after = data(run("store", "status", cwd=tmp_path))
    assert after["kind"] == ("sqlite" if url is None else "postgresql")
    assert (after["tables_version"], after["keys"], after["epoch"]) == (TABLES_VERSION, 1, 0)
    assert data(run("store", "check", cwd=tmp_path))["ok"]


def test_where_there_is_no_store_nothing_is_restored(tmp_path: Path, url: str | None) -> None:
    done = run("store", "restore", cwd=tmp_path)
    assert done.code == 1
    assert "there is no store to restore" in done.err
    assert url is not None or not (tmp_path / "portbook.db").exists()


@pytest.mark.covers("021.store.restored-backup")
def test_a_restored_backup_reopens_no_approval(tmp_path: Path, url: str | None) -> None:
    store = store_at(tmp_path, url)
    approvals = ApprovalStore(store, SystemClock())

    async def scenario() -> tuple[str, str]:
        used, pending = await approved(approvals), await asked(approvals, for_order(1))
        return used, pending

    used, pending = asyncio.run(scenario())
    # The backup is from here: the approval is redeemed afterwards, which a restored store does not know of.
    restored = data(run("store", "restore", "--json", cwd=tmp_path))
    assert (restored["epoch"], restored["expired_approvals"]) == (1, 2)
    for approval_id, ask in ((used, ASK), (pending, for_order(1))):
        ticket = approvals.ticket(approval_id)
        assert ticket is not None
        assert ticket.state is State.EXPIRED
        assert why(asyncio.run(refusal_of(approvals, ask, approval_id))) == "expired"
    store.close()
    approvals.close()
    status = data(run("store", "status", cwd=tmp_path))
    assert status["approvals"].get("pending", 0) == status["approvals"].get("approved", 0) == 0
    assert status["approvals"]["expired"] == 2
    shown, _ = on_a_terminal(tmp_path, "store", "status")
    assert "2 expired" in shown
    assert "{" not in shown
    listed, _ = on_a_terminal(tmp_path, "approvals", "list")
    assert "by restore or copy" in listed
    assert "1970" not in listed
    assert data(run("store", "restore", "--json", cwd=tmp_path))["epoch"] == 2


@pytest.mark.covers("021.store.copied")
def test_a_file_is_copied_into_a_database_and_its_approvals_are_valid_there_alone(
    tmp_path: Path, postgres_schema: str
) -> None:
    file = Store(tmp_path / "old.db")
    approvals = ApprovalStore(file, SystemClock())
    approval_id = asyncio.run(approved(approvals))
    env = environment(PORTBOOK_STORE=str(tmp_path / "old.db"))
    key = data(run("keys", "create", "ada", "--json", cwd=tmp_path, env=env))["id"]
    env = environment(PORTBOOK_STORE_URL=postgres_schema)
    copied = data(run("store", "copy", "old.db", cwd=tmp_path, env=env))
    assert (copied["rows"]["ticket"], copied["rows"]["caller_key"]) == (1, 1)
    [listed] = data(run("keys", "list", cwd=tmp_path, env=env))["keys"]
    assert listed["id"] == key
    assert why(asyncio.run(refusal_of(approvals, ASK, approval_id))) == "expired"
    file.close()
    approvals.close()
    store = PostgresStore(postgres_schema)
    approvals = ApprovalStore(store, SystemClock())
    assert asyncio.run(approvals.admit(ASK, approval_id)) == approval_id
    store.close()
    again = run("store", "copy", "old.db", cwd=tmp_path, env=env)
    assert again.code == 2
    assert "copy into an empty database" in again.err + again.out.decode()


def test_what_cannot_be_is_told_without_a_password(tmp_path: Path) -> None:
    Store(tmp_path / "old.db").submit(lambda _: None).result()
    assert run("store", "copy", "old.db", cwd=tmp_path).code == 2
    for url, sentence in {
        "postgresql://ada:canary-4711@127.0.0.1:1/x": "postgresql://127.0.0.1:1/x: cannot be reached",
        "mysql://ada:canary-4711@127.0.0.1/x": "must begin with postgresql://",
        "postgresql://ada:canary-4711@[::1/x": "is not the address of a PostgreSQL database",
    }.items():
        for words in (("store", "status"), ("store", "check", "--json"), ("doctor",), ("keys", "list")):
            finished = run(*words, cwd=tmp_path, env=environment(PORTBOOK_STORE_URL=url))
            said = finished.out.decode() + finished.err
            assert finished.code == (0 if words == ("doctor",) else 2)
            assert sentence in said
            assert "canary" not in said


def test_a_damaged_file_is_found(tmp_path: Path) -> None:
    assert run("store", "migrate", cwd=tmp_path).code == 0
    path = tmp_path / "portbook.db"
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink(missing_ok=True)
    kept = path.read_bytes()
    shutil.copy(path, tmp_path / "whole.db")
    page = 4096
    path.write_bytes(kept[: 6 * page] + b"\xff" * page + kept[7 * page :])
    assert run("store", "check", cwd=tmp_path).code in (1, 2)
