"""The wheel carries what a checkout has at hand: contract schemas, documentation, types."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.portbook_process import ROOT, environment


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("portbook-*.whl"))


@pytest.mark.covers("000.envelope.shipped")
def test_the_contract_schemas_are_found_inside_the_installed_wheel(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        archive.extractall(tmp_path / "site")
    assert "portbook/_shipped/schemas/envelope.schema.json" in names
    assert "portbook/_shipped/schemas/tools/docs.search.json" in names
    assert "portbook/py.typed" in names
    pages = (
        "docs.html",
        "key_needed.html",
        "console/console.html",
        "console/main.js",
        "console/base.css",
        "console/icon.svg",
    )
    assert {f"portbook/doors/http/pages/{page}" for page in pages} <= set(names)
    script = (
        "import portbook, portbook.tools.contract_registry as r;"
        "assert 'site' in portbook.__file__, portbook.__file__;"
        "registry = portbook.SchemaRegistry();"
        "assert 'site' in str(registry.schema_root);"
        "registry.load_envelope();"
        "print(registry.load_tool_io('mcp.tool:docs.search').input.is_valid({'query': 'x'}))"
    )
    # An editable install announces itself through a .pth file, which -S leaves unread.
    places = [str(tmp_path / "site"), *(path for path in sys.path if path.endswith("site-packages"))]
    path = ":".join(places)
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        env=environment(PYTHONPATH=path),
        cwd=tmp_path,
        capture_output=True,
    )
    assert (done.stdout, done.returncode) == (b"True\n", 0), done.stderr


def test_the_documentation_is_searchable_from_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert any(name.startswith("portbook/_shipped/docs/") for name in archive.namelist())


def test_nothing_of_the_official_sdks_name_is_shipped(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if name.startswith("mcp/")]


def test_the_test_client_and_its_pytest_plugin_are_shipped(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {"portbook/testing/client.py", "portbook/testing/plugin.py"} <= set(archive.namelist())
        [entry_points] = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        told = archive.read(entry_points).decode()
    assert "[pytest11]\nportbook = portbook.testing.plugin" in told
