"""What is installed: the pins of serving are complete, and the files of a deployment are what they say."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

from portbook.settings import SETTINGS

ROOT = Path(__file__).parent.parent.parent
CONTAINERFILE = ROOT / "Containerfile"
UNIT = ROOT / "deploy" / "portbook.service"


def pins(name: str) -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(line.split("==") for line in lines if "==" in line and not line.startswith("#"))


def needed_by(names: list[str]) -> set[str]:
    """The names of packages that these need, and those that they need, on this machine."""
    found: set[str] = set()
    while names:
        name = re.split(r"[^A-Za-z0-9._-]", names.pop())[0].lower().replace("_", "-")
        if name not in found:
            found.add(name)
            names += [each for each in requires(name) or () if _applies(each)]
    return found


def _applies(requirement: str) -> bool:
    from packaging.requirements import Requirement

    marker = Requirement(requirement).marker
    return marker is None or marker.evaluate({"extra": ""})


def test_what_serving_needs_is_pinned_whole_and_nothing_else_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(pins("requirements-serve.txt")) == needed_by(list(project["dependencies"]))


def test_what_a_build_needs_is_pinned_whole_but_for_the_dependencies_of_the_carrier() -> None:
    assert set(pins("requirements-build.txt")) == {*needed_by(["hatchling", "editables"]), "mcp-fuzzer"}


def test_each_package_is_pinned_in_one_place_and_pip_reads_them_all() -> None:
    files = ("requirements.txt", *(f"requirements-{part}.txt" for part in ("serve", "postgres", "build")))
    names = [re.sub(r"\[.*\]", "", name) for file in files for name in pins(file)]
    assert len(names) == len(set(names))
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert {f"-r {file}" for file in files[1:]} < set(lines)


def test_what_a_store_in_postgresql_needs_is_pinned_whole() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (extra,) = project["optional-dependencies"]["postgres"]
    assert extra.startswith("psycopg[binary]")
    needed = needed_by(["psycopg", "psycopg-binary"])
    assert set(pins("requirements-postgres.txt")) == needed - set(pins("requirements-serve.txt"))


# A Python that makes an environment of itself, and whose pip fails for a reason of its own.
FAILING_PYTHON = """\
#!/bin/sh
case "$*" in
    *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *"pip install"*)
        echo "Collecting orjson==3"
        echo "  Using cached orjson-3.whl"
        echo "Looking in vain for a compiler"
        exit 1
        ;;
esac
"""


def test_a_failed_install_shows_the_line_that_names_the_cause(tmp_path: Path) -> None:
    for name in (
        *("scripts/environment", "requirements-serve.txt", "requirements-build.txt", "requirements.txt"),
        "requirements-postgres.txt",
        *("pyproject.toml", "hatch_build.py", "src/portbook/schema/official_schema_digests.py"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    python = tmp_path / "python"
    python.write_text(FAILING_PYTHON)
    python.chmod(0o755)
    done = subprocess.run(
        ["sh", "scripts/environment", "serve"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PORTBOOK_PYTHON": str(python)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [
        "Looking in vain for a compiler",
        "portbook: error: pip could not install the packages; mend what it says above, then run this again",
    ]
    assert not list(tmp_path.glob(".venv/.portbook-*"))  # no stamp: the next run tries again


def test_the_environment_script_knows_two_purposes() -> None:
    done = subprocess.run(
        ["sh", "scripts/environment", "play"], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "portbook: error: scripts/environment takes serve or test, not play\n"
    assert 'scripts/environment" serve\n' in (ROOT / "scripts" / "serve").read_text()


# -- the container


def instructions() -> list[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", CONTAINERFILE.read_text())
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines]


def test_the_container_runs_without_rights_and_writes_to_one_folder() -> None:
    last = dict(instructions())
    assert last["USER"] == "10001"
    assert (last["WORKDIR"], last["VOLUME"]) == ("/data", "/data")
    assert last["STOPSIGNAL"] == "SIGTERM"
    assert "/livez" in last["HEALTHCHECK"]
    assert last["ARG"].startswith("BASE=")
    assert [words for name, words in instructions() if name == "FROM"] == ["${BASE} AS build", "${BASE}"]


def test_what_the_container_copies_and_sets_exists() -> None:
    copied = [words for name, words in instructions() if name == "COPY" and "--from" not in words]
    for words in copied:
        for source in words.split()[:-1]:
            assert (ROOT / source).exists(), source
    known = {setting.env for setting in SETTINGS}
    named = re.findall(r"PORTBOOK_\w+", CONTAINERFILE.read_text() + UNIT.read_text())
    assert set(named) <= known


def test_the_containerfile_is_linted() -> None:
    linter = Path(sys.executable).parent / "hadolint"
    if not linter.exists():
        pytest.skip("no hadolint here: pip install -r requirements.txt brings it")
    done = subprocess.run([str(linter), str(CONTAINERFILE)], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "")


# The base image that CONTRIBUTING.md makes without a registry, and how each tool tells whether it has it.
BASE_IMAGE = "localhost/portbook-base"
BUILDERS = {
    "docker": ["image", "inspect"],
    "podman": ["image", "inspect"],
    "buildah": ["inspect", "--type", "image"],
}


def image_builder() -> list[str]:
    """The command that builds an image here; none where no tool for it has a base image."""
    named = shlex.split(os.environ.get("PORTBOOK_IMAGE_BUILDER", ""))
    if named:
        return named
    for tool, question in BUILDERS.items():
        found = shutil.which(tool)
        if found is None:
            continue
        asked = subprocess.run([found, *question, BASE_IMAGE], capture_output=True, timeout=60)
        if asked.returncode == 0:
            return [found, "build", "--build-arg", f"BASE={BASE_IMAGE}"]
    return []


def test_the_image_is_built_where_a_tool_has_a_base_for_it() -> None:
    builder = image_builder()
    if not builder:
        pytest.skip(f"no image is built: no tool here has {BASE_IMAGE}; CONTRIBUTING.md shows how to make it")
    # It took 51 and 82 s on two busy cores, most of it for the packages.
    done = subprocess.run(
        [*builder, "-f", "Containerfile", "."], cwd=ROOT, capture_output=True, text=True, timeout=170
    )
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.parametrize("tool", BUILDERS)
def test_a_tool_that_has_the_base_image_is_used(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PORTBOOK_IMAGE_BUILDER", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert image_builder() == []
    fake = tmp_path / tool
    fake.write_text(f'#!/bin/sh\ncase "$*" in *inspect*{BASE_IMAGE}) exit 0 ;; esac\nexit 1\n')
    fake.chmod(0o755)
    assert image_builder() == [str(fake), "build", "--build-arg", f"BASE={BASE_IMAGE}"]
    monkeypatch.setenv("PORTBOOK_IMAGE_BUILDER", "docker build")
    assert image_builder() == ["docker", "build"]


# -- the service


def test_the_unit_drains_reloads_and_has_no_rights() -> None:
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment] # names are written with capitals
    unit.read(UNIT)
    service = unit["Service"]
    assert service["ExecStart"].split()[1:] == ["serve", "--http", "--config", "/etc/portbook/portbook.toml"]
    assert (service["KillSignal"], service["DynamicUser"]) == ("SIGTERM", "yes")
    assert service["ExecReload"].endswith("-HUP $MAINPID")
    assert (service["ProtectSystem"], service["NoNewPrivileges"]) == ("strict", "yes")


def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/portbook/bin/portbook", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, timeout=60
    )
    told = [line for line in done.stderr.splitlines() if "portbook.service" in line]
    assert told == []
