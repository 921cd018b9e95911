"""Every example that serves tools answers what its README shows; test_readme follows the others."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.example_gateway import gateway_of
from support.page_terminal import Terminal, steps
from support.stand_in import portbook_program

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/README.md"))
SERVED = [folder for folder in FOLDERS if (folder / "calls.jsonl").is_file()]

_SHOWN = re.compile(
    r"^```console\n\$ portbook serve --stdio < calls\.jsonl\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


def test_every_example_has_a_readme_and_what_serves_tools_has_a_config_and_calls() -> None:
    folders = sorted(path for path in EXAMPLES.iterdir() if path.is_dir() and path.name != "__pycache__")
    assert folders == FOLDERS
    assert [folder for folder in folders if (folder / "portbook.toml").is_file()] == SERVED


@pytest.mark.parametrize("folder", SERVED, ids=lambda folder: folder.name)
def test_an_example_answers_what_its_readme_shows(folder: Path, tmp_path: Path) -> None:
    shown = _SHOWN.findall((folder / "README.md").read_text("utf-8"))
    assert len(shown) == 1, "a README shows the answers to its calls once"
    ignored = shutil.ignore_patterns("runs", "__pycache__", "portbook.db*")
    copy = Path(shutil.copytree(folder, tmp_path / folder.name, ignore=ignored))

    with gateway_of(copy):
        served = subprocess.run(
            [sys.executable, "-m", "portbook", "serve", "--stdio"],
            input=(copy / "calls.jsonl").read_bytes(),
            capture_output=True,
            cwd=copy,
            env={name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")},
            timeout=60,
            check=False,
        )

    assert served.stderr == b""
    assert served.stdout.decode() == shown[0]
    assert served.returncode == 0
    records = copy / "runs/mcp_server/envelope_validation/envelope_validation.latest.jsonl"
    calls = (copy / "calls.jsonl").read_text("utf-8").splitlines()
    assert len(records.read_text("utf-8").splitlines()) == len(calls)


@pytest.fixture(scope="module")
def portbook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with portbook_program(tmp_path_factory.mktemp("bin")) as program:
        yield program


@pytest.mark.parametrize("folder", SERVED, ids=lambda folder: folder.name)
def test_the_commands_of_an_examples_readme_do_what_it_shows(
    folder: Path, tmp_path: Path, portbook: Path
) -> None:
    terminal = Terminal(tmp_path, portbook)
    ignored = shutil.ignore_patterns("runs", "__pycache__", "portbook.db*")
    shutil.copytree(folder, terminal.folder, ignore=ignored, dirs_exist_ok=True)
    with gateway_of(terminal.folder):
        for step in steps(folder / "README.md"):
            terminal.do(step)
