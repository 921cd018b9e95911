"""The layers hold: import-linter's contracts, run as a test."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

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


BROKEN = [
    ("import portbook.pipeline", "wire/lines_and_size_limit.py", "Layers of the package"),
    (
        "import portbook.doors.http.health_route",
        "doors/http/rest_and_rpc_routes.py",
        "Layers of doors/http",
    ),
    (
        "import portbook.mcp.connection",
        "mcp/listings_and_cache_lifetime.py",
        "No circles among siblings, in any room",
    ),
    (
        "import portbook.dialects.asset_messages",
        "dialects/rest_bodies.py",
        "Dialects do not import each other",
    ),
    ("import time", "pipeline.py", PURE),
    ("import pathlib", "redaction/replacements_and_pointers.py", PURE),
    ("import jsonschema_rs", "tools/catalog.py", "Only the engine knows the validator library"),
    ("import pydantic", "tools/catalog.py", "Only two modules know pydantic"),
    ("import mcp", "boundary.py", "Nothing imports the official SDK's name"),
]


def linted(copy: Path) -> str:
    """What the linter says of a copy of the package, which it does not pass."""
    script = f"import sys; sys.path.insert(0, 'src'); {LINT}"
    done = subprocess.run([sys.executable, "-c", script], cwd=copy, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    return done.stdout


def copied(to: Path) -> Path:
    shutil.copytree(ROOT / "src", to / "src")
    shutil.copy(ROOT / ".importlinter", to)
    return to / "src" / "portbook"


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the linter says where every layer is broken, each by a line of its own."""
    copy = tmp_path_factory.mktemp("layers")
    package = copied(copy)
    for line, module, _ in BROKEN:
        with (package / module).open("a") as broken:
            broken.write(f"\n{line}\n")
    return linted(copy)


@pytest.mark.parametrize(("line", "module", "contract"), BROKEN)
def test_a_broken_layer_is_found(told: str, line: str, module: str, contract: str) -> None:
    assert re.search(rf"{re.escape(contract)}\s+BROKEN", told), told
    name = "portbook." + module.removesuffix(".py").replace("/", ".")
    imported = line.removeprefix("import ")
    assert re.search(rf"{re.escape(name)} -> {re.escape(imported)} ", told), told


def test_a_module_that_stands_in_no_layer_is_found(tmp_path_factory: pytest.TempPathFactory) -> None:
    copy = tmp_path_factory.mktemp("layers")
    (copied(copy) / "stages/loose.py").touch()
    assert "loose" in linted(copy)
