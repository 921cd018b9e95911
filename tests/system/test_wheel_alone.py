"""The wheel in a clean environment: it works with its own dependencies alone, on each Python at hand."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from portbook.version import __version__
from support import sdks
from support.counts import count
from support.portbook_process import ROOT, environment

SUPPORTED = ("3.11", "3.12", "3.13", "3.14")
TOOLS = """
from portbook import Toolset

toolset = Toolset("greetings")

@toolset.tool(effect="read")
def greet(name: str) -> str:
    "Say hello."
    return f"Hello, {name}!"
"""
CONVERSATION = """\
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},\
"clientInfo":{"name":"me","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}
"""


# What uv says where there is no network. Whatever else keeps the wheel from being installed is its fault.
NO_INDEX = ("dns error", "error trying to connect", "Could not connect", "timed out", "Failed to fetch")


@functools.cache
def pythons() -> list[str]:
    """The Pythons at hand that Portbook supports, this one first: their paths, one for each version."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    shims = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in SUPPORTED:
        named = [shutil.which(f"python{version}"), *sorted(map(str, shims.glob(f"{version}.*/bin/python")))]
        for path in filter(None, named):
            if version not in found and _is(path, version):
                found[version] = path
    return list(found.values())


def _is(path: str, version: str) -> bool:
    """Whether it starts, and is of that version: a shim may stand for a Python that is not there."""
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([path, "-IS", "-c", ask], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() == version


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=ROOT, check=True, capture_output=True)
    [made] = folder.glob("portbook-*.whl")
    return made


def installed(wheel: Path, python: str, folder: Path) -> Path:
    """The folder of the commands of a new environment, into which the wheel alone was installed."""
    try:
        uv = str(sdks.uv_program())
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    quiet = ("--quiet", "--no-config")
    made = folder / "environment"
    subprocess.run([uv, "venv", *quiet, "--python", python, str(made)], check=True, timeout=60)
    into = ("--python", str(made / "bin" / "python"))
    done = subprocess.run(
        [uv, "pip", "install", *quiet, *into, str(wheel)], capture_output=True, text=True, timeout=170
    )
    if done.returncode and any(words in done.stderr for words in NO_INDEX):
        pytest.skip(f"no index of packages can be reached: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stderr
    return made / "bin"


@pytest.mark.soak("wheel pythons")
@pytest.mark.covers("design.wheel.alone")
def test_it_serves_calls_and_checks_with_its_own_dependencies_alone(wheel: Path, tmp_path: Path) -> None:
    for number, python in enumerate(pythons()[: count("wheel pythons")]):
        folder = tmp_path / str(number)
        folder.mkdir()
        use(installed(wheel, python, folder), folder)


def use(commands: Path, folder: Path) -> None:
    """Do with an installation what its user does first."""
    (folder / "my_tools.py").write_text(TOOLS)

    def portbook(*arguments: str, stdin: str = "", code: int = 0) -> str:
        done = subprocess.run(
            [str(commands / "portbook"), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment(),
            timeout=60,
        )
        assert done.returncode == code, done.stderr
        return done.stdout

    assert portbook("--version") == f"portbook {__version__}\n"
    assert json.loads(portbook("doctor", "--json"))["extras"] == {"yaml": "missing", "postgres": "missing"}
    assert portbook("call", "greet", "name=Ada", "--toolset", "my_tools.py") == '"Hello, Ada!"\n'
    assert json.loads(portbook("call", "docs.search", "query=policy"))["total"] >= 1
    assert json.loads(portbook("check", "--json", "my_tools.py"))["ok"]
    answers = portbook("serve", "--stdio", "my_tools.py", stdin=CONVERSATION).splitlines()
    assert json.loads(answers[1])["result"]["content"][0]["text"] == "Hello, Ada!"
    (folder / "api.yaml").write_text("openapi: 3.1.0\n")
    (folder / "portbook.toml").write_text('[http.x]\nopenapi = "api.yaml"\n')
    assert "install portbook[yaml]" in portbook("check", code=2)
    (folder / "portbook.toml").write_text('[store]\nurl = "postgresql://127.0.0.1/x"\n')
    assert "install portbook[postgres]" in portbook("check", code=2)
