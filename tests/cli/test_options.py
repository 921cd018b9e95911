"""What the verbs share: settings that can be used or are explained, and an output of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.portbook_process import SAMPLE_TOOLS, TOOLSET, invoke, run
from support.validated_folder import validate


def test_a_misspelt_setting_stops_it(folder: Path) -> None:
    (folder / "portbook.toml").write_text('[assets]\nschema = "x"\n')
    done = validate(folder, "assets")
    assert (done.code, "did you mean assets.schemas?" in done.err) == (2, True)


def test_what_a_tool_prints_stays_away_from_its_result(tmp_path: Path) -> None:
    finished = run("call", "printing", *TOOLSET, cwd=tmp_path)
    assert finished.out == b'""\n'
    assert "noise from a child" in finished.err


def test_what_a_tools_module_prints_when_loaded_never_reaches_the_frames(tmp_path: Path) -> None:
    tools = tmp_path / "loud.py"
    tools.write_text(f"print('noise while loading')\n{SAMPLE_TOOLS.read_text()}")
    finished = run("serve", "--stdio", str(tools), stdin=invoke("echo", {"text": "x"}) + b"\n", cwd=tmp_path)
    assert finished.answers == [{"jsonrpc": "2.0", "id": 1, "result": "x"}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing_here.py",), "nothing_here.py: no such file"),
        (("--config", "missing.toml"), "missing.toml: cannot be read"),
        (("--http", "--host", "256.1.1.1"), "--host: server.host must be an address or a name"),
    ],
)
def test_a_start_that_cannot_succeed_says_why_in_one_line_and_exits_2(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    finished = run("serve", *arguments, cwd=tmp_path)
    assert finished.code == 2
    assert finished.out == b""
    assert sentence in finished.err
    assert finished.err.count("\n") == 1
