"""The parts that settings describe: all that is wrong is told, in whichever part."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.app.usable_settings import usable_settings
from portbook.settings import BadSettings
from support.settings_files import load

WRONG = """\
[server]
allowed_origins = ["x"]
[envelope]
signing_key = "none.pem"
[redaction]
pointers = ["x"]
[[policy.rules]]
name = "r"
"""


def test_every_part_is_checked_before_the_first_problem_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadSettings) as raised:
        usable_settings(load(tmp_path, WRONG), {}, is_exposed=False)
    keys = [problem.split()[1] for problem in raised.value.problems]
    assert keys == [
        "server.allowed_origins[0]",
        "envelope.signing_key",
        "redaction.pointers[0]",
        "policy.rules[0].action",
    ]


def test_usable_settings_have_their_parts(tmp_path: Path) -> None:
    parts = usable_settings(load(tmp_path), {}, is_exposed=False)
    assert [tool.spec.name for tool in parts.collected.catalog] == ["docs.search"]
