"""The name `mcp` beside the official SDK of that name: not one of its files changes, and it stays the one."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support import sdks
from support.portbook_process import ROOT, environment

BUILD = "from hatchling.build import build_editable; import sys; print(build_editable(sys.argv[1]))"


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What an editable install of the alias puts into an environment."""
    folder = tmp_path_factory.mktemp("alias")
    subprocess.run(
        [sys.executable, "-c", BUILD, str(folder)], cwd=ROOT / "alias", check=True, capture_output=True
    )
    return next(folder.glob("*.whl"))


def install(python: Path, wheel: Path) -> None:
    uv = shutil.which("uv")
    by_uv = [uv, "pip", "install", "--quiet", "--python", str(python)] if uv else []
    by_pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run(
        [*(by_uv or by_pip), "--no-deps", str(wheel)], check=True, capture_output=True, timeout=120
    )


def test_an_editable_alias_is_a_path_and_no_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        placed = [name for name in archive.namelist() if ".dist-info/" not in name]
        [path_file] = placed
        assert path_file.endswith(".pth")
        assert archive.read(path_file).decode().strip() == str(ROOT / "alias")


@pytest.mark.covers("004.alias.sdk-untouched")
def test_beside_the_official_sdk_not_one_of_its_files_changes(wheel: Path, tmp_path: Path) -> None:
    try:
        sdk = sdks.python_sdk()
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    # A copy, so that the environment that other tests use stays the SDK's own.
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True, timeout=120
    )
    python = tmp_path / "env/bin/python"
    [there] = (sdk.parent.parent / "lib").glob("python*/site-packages")
    [here] = (tmp_path / "env/lib").glob("python*/site-packages")
    for part in (there / "mcp", *there.glob("mcp-*.dist-info")):
        shutil.copytree(part, here / part.name)
    before = digests(here)
    assert len(before) > 50

    install(python, wheel)

    after = digests(here)
    assert {name: after.get(name) for name in before} == before
    spec = "import importlib.util; print(importlib.util.find_spec('mcp').origin)"
    found = subprocess.run(
        [str(python), "-c", spec], capture_output=True, text=True, env=environment(), timeout=60
    )
    assert found.stdout.strip() == str(here / "mcp/__init__.py"), "the SDK is still the one that is imported"


def test_a_server_of_the_official_sdk_is_told_where_to_go(tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text("from mcp.server.fastmcp import FastMCP\n")
    where = {**environment(), "PYTHONPATH": str(ROOT / "alias")}

    def said(*command: str) -> str:
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, env=where, timeout=60
        )
        return done.stderr

    assert said("server.py").endswith(
        "ModuleNotFoundError: No module named 'mcp.server'\n"
        "This mcp is Portbook, not the official SDK: declare tools with a Toolset; "
        "docs/how-to/come-from-fastmcp.md (Come from FastMCP) shows how.\n"
    )
    assert said("-m", "portbook", "tools", "server.py") == (
        "portbook: error: server.py:1:1: cannot be imported: "
        "ModuleNotFoundError: No module named 'mcp.server'; "
        "declare tools with a Toolset; docs/how-to/come-from-fastmcp.md shows how\n"
    )
