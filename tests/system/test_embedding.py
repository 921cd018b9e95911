"""The build embeds the official schemas: byte for byte, or not at all."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from portbook.schema.official_schema_digests import LICENCE, PINS, SOURCE
from support.portbook_process import ROOT, environment

PLACE = Path("src/portbook/schema/official")
WANTED = {**{f"{revision}.json": pin for revision, pin in PINS.items()}, "LICENSE": LICENCE}
INSIDE = {
    **{f"{revision}.json": f"schemas/mcp-spec/schema/{revision}/schema.json" for revision in PINS},
    "LICENSE": "schemas/mcp-spec/LICENSE",
}
NEEDED = ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE", ".gitignore")


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


PINNED = {name: pin.sha256 for name, pin in WANTED.items()}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """This project as git would hand it out: without what it ignores."""
    root = tmp_path / "checkout"
    unwanted = shutil.ignore_patterns("official", "__pycache__")
    shutil.copytree(ROOT / "src", root / "src", ignore=unwanted)
    (root / "codex/specs/schemas").mkdir(parents=True)
    (root / "codex/specs/schemas/x.json").write_text("{}")
    (root / "docs").mkdir()
    (root / "docs/index.md").write_text("# Docs\n")
    for name in NEEDED:
        shutil.copy(ROOT / name, root / name)
    assert not (root / PLACE).exists()
    return root


def carrier_at(folder: Path) -> Path:
    """A copy of the carrier's data, in a package whose code must not run."""
    spec = importlib.util.find_spec("mcp_fuzzer")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    package = folder / "mcp_fuzzer"
    shutil.copytree(
        Path(next(iter(spec.submodule_search_locations))) / "schemas/mcp-spec", package / "schemas/mcp-spec"
    )
    (package / "__init__.py").write_text("raise SystemExit('the carrier was imported')\n")
    return package


def build(
    root: Path, hook: str = "build_wheel", carrier: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Build with hatchling; without a carrier, none can be found, even where one is installed."""
    hide = "" if carrier else "sys.modules['mcp_fuzzer'] = None;"
    script = f"import sys; {hide} from hatchling.build import {hook} as build; build(sys.argv[1])"
    return subprocess.run(
        [sys.executable, "-c", script, str(root / "dist")],
        cwd=root,
        env=environment(PYTHONPATH=str(carrier.parent) if carrier else ""),
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.covers("001.schema.embedded")
def test_the_wheel_has_every_schema_and_the_licence_byte_for_byte(checkout: Path, tmp_path: Path) -> None:
    done = build(checkout, carrier=carrier_at(tmp_path))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((checkout / "dist").glob("*.whl"))) as archive:
        archive.extractall(tmp_path / "wheel")
    assert digests(tmp_path / "wheel/portbook/schema/official") == PINNED


def test_an_editable_install_has_them_in_the_checkout(checkout: Path, tmp_path: Path) -> None:
    done = build(checkout, "build_editable", carrier_at(tmp_path))
    assert done.returncode == 0, done.stderr
    assert digests(checkout / PLACE) == PINNED


def test_a_source_distribution_has_them_and_builds_without_the_carrier(
    checkout: Path, tmp_path: Path
) -> None:
    done = build(checkout, "build_sdist", carrier_at(tmp_path))
    assert done.returncode == 0, done.stderr
    with tarfile.open(next((checkout / "dist").glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path / "sdist", filter="data")
    [unpacked] = (tmp_path / "sdist").iterdir()
    assert digests(unpacked / PLACE) == PINNED
    done = build(unpacked)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((unpacked / "dist").glob("*.whl"))) as archive:
        assert {f"portbook/schema/official/{name}" for name in WANTED} <= set(archive.namelist())


def test_a_file_that_is_right_is_not_written_again(checkout: Path, tmp_path: Path) -> None:
    carrier = carrier_at(tmp_path)
    build(checkout, "build_editable", carrier)
    before = {path: path.stat().st_ino for path in (checkout / PLACE).iterdir()}
    (checkout / PLACE / "2025-06-18.json").write_bytes(b"{}")
    build(checkout, "build_editable", carrier)
    after = {path: path.stat().st_ino for path in (checkout / PLACE).iterdir()}
    assert {path.name for path in after if after[path] != before[path]} == {"2025-06-18.json"}
    assert digests(checkout / PLACE) == PINNED


@pytest.mark.parametrize("name", WANTED)
def test_a_tampered_file_stops_the_build_with_one_sentence(name: str, checkout: Path, tmp_path: Path) -> None:
    carrier = carrier_at(tmp_path)
    tampered = carrier / INSIDE[name]
    data = bytearray(tampered.read_bytes())
    data[100] ^= 1
    tampered.write_bytes(data)
    done = build(checkout, carrier=carrier)
    assert done.returncode == 1
    assert done.stderr == (
        f"portbook: {tampered} is not the file that is pinned in "
        f"src/portbook/schema/official_schema_digests.py "
        f"({WANTED[name].size} bytes, sha256 {PINNED[name]}); reinstall {SOURCE}\n"
    )
    assert not (checkout / PLACE / name).exists()
    assert not list((checkout / "dist").glob("*.whl"))


def test_a_missing_file_stops_the_build_with_one_sentence(checkout: Path, tmp_path: Path) -> None:
    carrier = carrier_at(tmp_path)
    missing = carrier / INSIDE["2025-06-18.json"]
    missing.unlink()
    done = build(checkout, carrier=carrier)
    assert (done.returncode, done.stderr) == (1, f"portbook: {missing} cannot be read; reinstall {SOURCE}\n")


def test_a_missing_carrier_stops_the_build_with_one_sentence(checkout: Path) -> None:
    done = build(checkout)
    assert done.returncode == 1
    assert done.stderr == (
        f"portbook: schemas/mcp-spec/schema/2024-11-05/schema.json is to be taken from {SOURCE}, "
        f"which is not installed; run `pip install {SOURCE}`, or build with isolation\n"
    )


def test_the_carrier_is_pinned_wherever_it_is_named() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert SOURCE in config["build-system"]["requires"]
    assert SOURCE in (ROOT / "requirements-build.txt").read_text("utf-8").splitlines()


def test_this_checkout_has_them_and_git_does_not() -> None:
    assert digests(ROOT / PLACE) == PINNED
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    tracked = subprocess.run(
        ["git", "ls-files", "--", str(PLACE)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert tracked.stdout == ""
    ignored = subprocess.run(["git", "check-ignore", "-q", str(PLACE / "2026-07-28.json")], cwd=ROOT)
    assert ignored.returncode == 0
