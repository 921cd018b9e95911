from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.audit_log import Log
from support.validated_folder import with_tones


@pytest.fixture
def log(tmp_path: Path) -> Any:
    made = Log(tmp_path / "logs")
    made.log_dir.mkdir()
    made.new_run()
    yield made
    made.end()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_tones(tmp_path)
