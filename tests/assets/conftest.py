from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.assets.library import Library, load_library
from support.asset_samples import ASSET, TONE, BackendProcess, Write


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file below the test's folder: bytes as they are, anything else as JSON."""

    def write(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    return write


@pytest.fixture
def library(tmp_path: Path, write: Write) -> Library:
    """Two schemas, one of which refers to the other, and an example of each."""
    write("schemas/synesthetic-asset.schema.json", ASSET)
    write("schemas/tone.schema.json", TONE)
    write(
        "examples/SynestheticAsset_Example1.json",
        {"$schemaRef": "x/synesthetic-asset.schema.json", "name": "a"},
    )
    write("examples/tone.json", {"pitch": "high"})
    loaded = load_library(tmp_path / "schemas", tmp_path / "examples")
    assert loaded.warnings == ()
    return loaded


@pytest.fixture
def backend() -> Iterator[BackendProcess]:
    """A real backend, in a process of its own."""
    script = Path(__file__).with_name("backend_process.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield BackendProcess(f"http://127.0.0.1:{int(process.stdout.readline())}")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
