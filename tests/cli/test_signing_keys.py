"""`portbook keys signing`: a key that signs envelopes."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from portbook import PublicKey, SigningKey
from support.portbook_process import run


def test_a_new_key_is_readable_by_its_owner_alone_and_its_public_half_lies_beside_it(tmp_path: Path) -> None:
    made = run("keys", "signing", "mine.pem", cwd=tmp_path)
    assert (made.code, made.err) == (
        0,
        "portbook: wrote mine.pem, which is secret, and mine.pem.pub, which is public\n",
    )
    path = tmp_path / "mine.pem"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    key = SigningKey.from_pem(path.read_text())
    assert PublicKey.from_pem((tmp_path / "mine.pem.pub").read_text()) == key.public
    assert json.loads(made.out) == {"key_id": key.key_id, "public_key": key.public.to_pem()}
    secret = key.to_pem().splitlines()[1]
    assert secret not in made.out.decode() + made.err


def test_a_key_that_is_there_is_shown_and_never_replaced(tmp_path: Path) -> None:
    first = run("keys", "signing", cwd=tmp_path)
    before = (tmp_path / "signing.pem").read_bytes()
    second = run("keys", "signing", cwd=tmp_path)
    assert (second.code, second.out, second.err) == (0, first.out, "")
    assert (tmp_path / "signing.pem").read_bytes() == before


def test_a_file_that_is_no_key_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.pem").write_text("notes")
    finished = run("keys", "signing", "notes.pem", cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert finished.err == (
        "portbook: error: notes.pem: expected one PEM block, BEGIN PRIVATE KEY, and nothing else\n"
    )
    assert (tmp_path / "notes.pem").read_text() == "notes"


def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:
    finished = run("keys", "signing", "no/such/key.pem", cwd=tmp_path)
    assert (finished.code, finished.err) == (
        2,
        "portbook: error: no/such/key.pem: No such file or directory\n",
    )
