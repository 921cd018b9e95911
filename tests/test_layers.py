"""The layers hold: import-linter's contracts, run as a test."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness import ROOT

LINT = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache'])"


def test_every_import_keeps_the_layers() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


@pytest.mark.parametrize(
    ("line", "module"),
    [
        ("import portbook.pipeline", "wire/framing.py"),
        ("import time", "pipeline.py"),
        ("import jsonschema_rs", "tools/catalog.py"),
        ("import mcp", "boundary.py"),
        ("import portbook.doors.ndjson", "doors/rpc.py"),
    ],
)
def test_a_broken_layer_is_found(tmp_path_factory: pytest.TempPathFactory, line: str, module: str) -> None:
    import shutil

    copy = tmp_path_factory.mktemp("layers")
    shutil.copytree(ROOT / "src", copy / "src")
    shutil.copy(ROOT / "pyproject.toml", copy)
    broken = copy / "src" / "portbook" / module
    broken.write_text(f"{broken.read_text()}\n{line}\n")
    script = f"import sys; sys.path.insert(0, 'src'); {LINT}"
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    assert "1 broken" in done.stdout
