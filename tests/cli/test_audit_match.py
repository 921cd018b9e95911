"""`portbook audit match`: what it says where there is nothing to compare."""

from __future__ import annotations

from support.audit_log import Log


def test_a_match_needs_values_a_key_and_a_record_with_digests(log: Log) -> None:
    log.write(1)
    assert "give at least one of" in log.audit("match", "1", code=2).err
    (log.log_dir / "a.json").write_text("{}")
    assert "audit.key" in log.audit("match", "1", "--arguments", "a.json", code=2).err
    (log.log_dir / "audit.key").write_text("pbk_audit_" + "0" * 64)
    assert "no audit key was set" in log.audit("match", "1", "--arguments", "a.json", code=1).err
    assert "there is no record" in log.audit("match", "9", "--arguments", "a.json", code=1).err
