"""A changed policy on recorded calls: which ones, and for how long."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from portbook.app.replay_of_recorded_calls import PolicyTrial
from portbook.policy import Policy
from portbook.settings import BadSettings, Settings, load_settings

DENY = '[server]\nport = 1\n[[policy.rules]]\nname = "no"\naction = "deny"\ntools = ["drop*"]\n'


def settings_in(folder: Path) -> Settings:
    return load_settings(None, {}, {}, folder)


def trial_of(folder: Path, text: str = DENY) -> PolicyTrial:
    return PolicyTrial.of(Policy(), settings_in(folder), text, ())


def record(tool: str, second: int) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-01T00:00:{second:02}.000Z", "tool_id": f"mcp.tool:{tool}", "effect": "write",
        "caller": "ada", "attempt": 1, "input_bytes": 2, "arguments": {},
    }  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "mcp_server" / "execution"
    folder.mkdir(parents=True)
    for name, seconds in (("1", range(10)), ("2", range(10, 50))):
        lines = [json.dumps(record("drop" if second % 2 else "keep", second)) for second in seconds]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\nno record\n")
    return tmp_path / "runs"


def test_every_recorded_call_is_decided_by_both(tmp_path: Path, log: Path) -> None:
    found: dict[str, Any] = trial_of(tmp_path).run(log)
    assert (found["replayed"], found["complete"], found["more"]) == (50, True, 0)
    assert found["oldest"] == "2026-01-01T00:00:00.000Z"
    (change,) = found["changes"]
    assert (change["tool"], change["calls"], change["new"]["decision"]) == ("drop", 25, "deny")
    assert change["new"]["rule"] == "no (portbook.toml:3)"
    assert found["ignored"] == ["server"]


def test_only_calls_between_two_times_count(tmp_path: Path, log: Path) -> None:
    found = trial_of(tmp_path).run(log, "2026-01-01T00:00:05.000Z", "2026-01-01T00:00:12.000Z")
    assert (found["replayed"], found["oldest"]) == (7, "2026-01-01T00:00:05.000Z")


def test_it_ends_in_time_and_says_how_far_it_came(tmp_path: Path, log: Path) -> None:
    more = "\n".join(json.dumps(record("keep", 50 + number // 100)) for number in range(900))
    (log / "mcp_server" / "execution" / "3.jsonl").write_text(more + "\n")
    seconds = count(0, 6)
    found = trial_of(tmp_path).run(log, tick=lambda: next(seconds))
    assert (found["replayed"], found["complete"]) == (400, False)
    assert found["oldest"] == "2026-01-01T00:00:55.000Z"  # the newest came first


def test_a_policy_that_could_not_be_put_into_force_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"^policy:2:1: policy\.rules\[0\]\.action must be one of"):
        trial_of(tmp_path, '[[policy.rules]]\naction = "forbid"\nname = "x"\n')
