"""The layers hold: import-linter's contracts, run as a test."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from support.portbook_process import ROOT

PURE = "No I/O, no clock, no randomness where the pipeline decides"
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
    ("line", "module", "contract"),
    [
        ("import portbook.pipeline", "wire/lines_and_size_limit.py", "Layers of the package"),
        ("import portbook.doors.http.rpc_route", "doors/http/rest_routes.py", "Layers of doors/http"),
        ("import portbook.mcp.connection", "mcp/listings.py", "No circles among siblings, in any room"),
        (
            "import portbook.dialects.asset_messages",
            "dialects/rest_bodies.py",
            "Dialects do not import each other",
        ),
        ("import time", "pipeline.py", PURE),
        (
            "import pathlib",
            "redaction/replacements.py",
            "No I/O, no clock, no randomness where the pipeline decides",
        ),
        ("import jsonschema_rs", "tools/catalog.py", "Only the engine knows the validator library"),
        ("import pydantic", "tools/catalog.py", "Only two modules know pydantic"),
        ("import mcp", "boundary.py", "Nothing imports the official SDK's name"),
    ],
)
def test_a_broken_layer_is_found(
    tmp_path_factory: pytest.TempPathFactory, line: str, module: str, contract: str
) -> None:
    copy = tmp_path_factory.mktemp("layers")
    shutil.copytree(ROOT / "src", copy / "src")
    shutil.copy(ROOT / ".importlinter", copy)
    broken = copy / "src" / "portbook" / module
    broken.write_text(f"{broken.read_text()}\n{line}\n")
    script = f"import sys; sys.path.insert(0, 'src'); {LINT}"
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    assert re.search(rf"{re.escape(contract)}\s+BROKEN", done.stdout), done.stdout


def test_a_module_that_stands_in_no_layer_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    copy = tmp_path_factory.mktemp("layers")
    shutil.copytree(ROOT / "src", copy / "src")
    shutil.copy(ROOT / ".importlinter", copy)
    (copy / "src/portbook/stages/loose.py").touch()
    script = f"import sys; sys.path.insert(0, 'src'); {LINT}"
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    assert "loose" in done.stdout
