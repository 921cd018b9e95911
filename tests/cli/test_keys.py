"""`portbook keys`: make a key, show it once, take it back."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portbook.clock import SystemClock
from portbook.errors import Refused
from portbook.stores.caller_keys import Callers, Keys
from portbook.stores.sqlite_store import Store
from support.portbook_process import PORTBOOK, Finished, environment, run

KEY = re.compile(rb"pbk_[A-Za-z0-9_-]{43}\n")


def data(finished: Finished) -> Any:
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


def owner_of(key: str, folder: Path) -> Any:
    """Whose key a server with this store takes it for, and the tools it opens; None where it is refused."""
    store = Store(folder / "portbook.db")
    try:
        caller = Callers(required=True, stored=Keys(store, SystemClock()).allowed).identify(key)
    except Refused:
        return None
    else:
        return caller.name, caller.tools
    finally:
        store.close()


@pytest.mark.covers("002.keys.cli")
def test_a_key_is_shown_once_opens_its_tools_and_can_be_revoked(tmp_path: Path) -> None:
    made = run("keys", "create", "ada", "--tool", "orders.*", "--tool", "refund", cwd=tmp_path)
    assert made.code == 0
    assert KEY.fullmatch(made.out)
    key = made.out.decode().strip()
    [listed] = data(run("keys", "list", cwd=tmp_path))["keys"]
    assert (
        made.err == f"portbook: key {listed['id']} of ada may call orders.*, refund; it is not shown again\n"
    )
    assert listed == {
        "id": listed["id"],
        "name": "ada",
        "tools": ["orders.*", "refund"],
        "made_at": listed["made_at"],
        "revoked_at": None,
    }
    assert owner_of(key, tmp_path) == ("ada", ("orders.*", "refund"))
    [revoked] = data(run("keys", "revoke", "ada", cwd=tmp_path))["keys"]
    assert revoked == {**listed, "revoked_at": revoked["revoked_at"]}
    assert revoked["revoked_at"] is not None
    assert owner_of(key, tmp_path) is None
    assert data(run("keys", "list", cwd=tmp_path))["keys"] == [revoked]


def test_without_tools_a_key_opens_all_of_them(tmp_path: Path) -> None:
    made = data(run("keys", "create", "ada", "--json", cwd=tmp_path))
    assert made.keys() == {"id", "name", "tools", "made_at", "revoked_at", "key"}
    assert owner_of(made["key"], tmp_path) == ("ada", ("*",))


def test_one_of_several_keys_is_revoked_by_its_id(tmp_path: Path) -> None:
    one, other = (data(run("keys", "create", "ada", "--json", cwd=tmp_path)) for _ in range(2))
    assert [key["id"] for key in data(run("keys", "revoke", one["id"], cwd=tmp_path))["keys"]] == [one["id"]]
    assert owner_of(one["key"], tmp_path) is None
    assert owner_of(other["key"], tmp_path) == ("ada", ("*",))


BAD_PATTERN = ("create", "ada", "--tool", "Orders")


@pytest.mark.parametrize(
    "arguments", [("create", "a b"), ("create", "anonymous"), BAD_PATTERN, ("create",), ("revoke",)]
)
def test_what_cannot_be_meant_is_a_mistake_in_usage(arguments: tuple[str, ...], tmp_path: Path) -> None:
    finished = run("keys", *arguments, cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert "error: " in finished.err
    assert [*tmp_path.iterdir()] == []


def test_a_key_that_is_not_there_cannot_be_revoked(tmp_path: Path) -> None:
    finished = run("keys", "revoke", "ada", cwd=tmp_path)
    assert (finished.code, finished.out) == (1, b"")
    assert "no active key has this id or name" in finished.err
    assert [*tmp_path.iterdir()] == []


def test_a_terminal_lists_keys_in_words(tmp_path: Path) -> None:
    for name in ("ada", "grace"):
        run("keys", "create", name, cwd=tmp_path)
    run("keys", "revoke", "ada", cwd=tmp_path)
    ada, grace = data(run("keys", "list", cwd=tmp_path))["keys"]
    controller, terminal = os.openpty()
    subprocess.run([*PORTBOOK, "keys", "list"], stdout=terminal, cwd=tmp_path, env=environment(), check=True)
    os.close(terminal)
    shown = os.read(controller, 65536).decode().replace("\r\n", "\n")
    os.close(controller)
    assert shown.splitlines() == [
        f"{ada['id']}  ada    revoked {ada['revoked_at']}  *",
        f"{grace['id']}  grace  created {grace['made_at']}  *",
    ]


def test_the_store_can_be_named_by_a_variable(tmp_path: Path) -> None:
    env = environment(PORTBOOK_STORE=str(tmp_path / "kept" / "keys.db"))
    assert run("keys", "create", "ada", cwd=tmp_path, env=env).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    assert len(data(run("keys", "list", cwd=tmp_path, env=env))["keys"]) == 1
