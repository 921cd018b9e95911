"""A store that further users can read or write: made private where it is ours, refused where it is not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.live_processes import Owner, folder_of
from portbook.stores.sqlite_store import Store
from support.portbook_process import run
from support.store_rows import names, put

NEIGHBOURS = ("", "-wal", "-shm")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "portbook.db"


def test_a_store_that_others_could_read_is_mended_by_every_command(path: Path) -> None:
    assert run("keys", "create", "ci", cwd=path.parent).code == 0
    for mode in (0o644, 0o666, 0o660, 0o602):
        path.chmod(mode)
        assert run("keys", "list", cwd=path.parent).code == 0
        assert mode_of(path) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("suffix", NEIGHBOURS)
def test_a_store_of_a_different_user_that_others_could_read_is_refused(path: Path, suffix: str) -> None:
    assert run("keys", "create", "ci", cwd=path.parent).code == 0
    exposed = path.with_name(path.name + suffix)
    exposed.touch()
    exposed.chmod(0o640)
    os.chown(exposed, 12345, 12345)
    done = run("keys", "list", cwd=path.parent)
    assert done.code == 2
    assert "users other than its owner can read or write it" in done.err
    assert f"chmod go= {exposed.name}" in done.err
    assert mode_of(exposed) == 0o640, "it is not ours to change"
    exposed.chmod(0o600)
    assert run("keys", "list", cwd=path.parent).code == 0


@pytest.mark.parametrize("suffix", NEIGHBOURS)
def test_every_file_of_an_open_store_is_mended(path: Path, suffix: str) -> None:
    store = Store(path)
    store.submit(put("a")).result()
    exposed = path.with_name(path.name + suffix)
    exposed.chmod(0o666)
    other = Store(path)
    assert "a" in other.read(names, [])
    assert mode_of(exposed) == 0o600
    store.close()
    other.close()


def test_what_is_not_ours_is_refused_before_it_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"not even a database")
    path.chmod(0o644)
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    with pytest.raises(StoreError, match="belongs to a different user"):
        Store(path).submit(put("a"))


def test_the_database_of_a_different_program_keeps_its_permissions(path: Path) -> None:
    path.write_bytes(b"not a database, but somebody's file\n" * 200)
    path.chmod(0o644)
    with pytest.raises(StoreError, match="not a database"):
        Store(path).submit(put("a"))
    assert mode_of(path) == 0o644


def test_the_folder_of_owners_is_mended_or_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = folder_of(path)
    folder.mkdir()
    folder.chmod(0o777)
    owner = Owner(folder, "one")
    owner.hold()
    assert mode_of(folder) == 0o700
    owner.release()
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(StoreError, match="belongs to a different user"):
        Owner(folder, "two").hold()
