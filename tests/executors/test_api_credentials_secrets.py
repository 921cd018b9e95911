"""Secrets from files: read again when they change, and none where they are broken."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from portbook.apis.gateway import Secret
from portbook.executors.api_credentials import NoCredential, SecretValue


def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    seen: list[str] = []
    file = tmp_path / "token"
    file.write_text("first-token\n")
    secret = SecretValue("bearer", Secret(file=file), {}, seen.append)
    assert [secret.read(), secret.read()] == ["first-token", "first-token"]
    replacement = tmp_path / "new"
    replacement.write_text("second-token")
    replacement.rename(file)  # as a rotation does it
    assert secret.read() == "second-token"
    assert seen == secret.known() == ["first-token", "second-token"]


def test_a_file_that_is_written_over_is_noticed_by_its_time(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("aaaa")
    secret = SecretValue("bearer", Secret(file=file), {}, lambda _: None)
    secret.read()
    file.write_text("bbbb")
    os.utime(file, ns=(1, 1))
    assert secret.read() == "bbbb"


def test_a_file_that_is_gone_or_broken_is_no_credential(tmp_path: Path) -> None:
    file = tmp_path / "token"
    secret = SecretValue("http.orders.bearer", Secret(file=file), {}, lambda _: None)
    with pytest.raises(NoCredential, match="cannot be read"):
        secret.read()
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(NoCredential, match="printable ASCII"):
        secret.read()
    file.write_text("good-token")
    assert secret.read() == "good-token"
