"""`portbook audit key`: makes a key once, and shows the id of one."""

from __future__ import annotations

from pathlib import Path

from support.portbook_process import run


def test_a_key_is_made_once_and_never_printed(tmp_path: Path) -> None:
    made = run("audit", "key", "k", cwd=tmp_path)
    secret = (tmp_path / "k").read_text()
    assert secret.startswith("pbk_audit_")
    assert secret.strip() not in made.out.decode() + made.err
    again = run("audit", "key", "k", cwd=tmp_path)
    assert (again.answers, again.err) == (made.answers, "")
    assert (tmp_path / "k").read_text() == secret
    (tmp_path / "other").write_text("a")
    refused = run("audit", "key", "other", cwd=tmp_path)
    assert (refused.code, "not an audit key" in refused.err) == (2, True)


def test_settings_that_name_no_key_are_refused_with_their_place(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('[audit]\nkey = "missing"\n')
    done = run("check", cwd=tmp_path)
    assert done.code != 0
    assert "portbook.toml:2:" in done.out.decode() + done.err
    assert "portbook audit key" in done.out.decode() + done.err
