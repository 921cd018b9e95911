"""`portbook completion`: a script for each shell, which completes the names of tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.portbook_process import environment, run

TOOLS = 'from portbook import Toolset\n\ntoolset = Toolset("x")\n\n\n@toolset.tool\ndef greet() -> int: ...\n'


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell: str, tmp_path: Path) -> None:
    finished = run("completion", shell, cwd=tmp_path)
    assert finished.code == 0
    assert f"_PORTBOOK_COMPLETE={shell}_complete".encode() in finished.out


def test_the_help_has_a_line_to_copy_for_each_shell(tmp_path: Path) -> None:
    shown = run("completion", "--help", cwd=tmp_path).out.decode()
    assert '\n  bash: eval "$(portbook completion bash)" in ~/.bashrc\n  zsh:  eval' in shown


def completed(folder: Path, words: str) -> list[str]:
    at = str(len(words.split()) - 1)
    asked = environment(_PORTBOOK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=at)
    return [line.partition(",")[2] for line in run(cwd=folder, env=asked).out.decode().split()]


def test_names_of_tools_are_completed_and_broken_settings_complete_nothing(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text('[python]\ntoolsets = ["tools.py"]\n')
    assert completed(tmp_path, "portbook call gr") == ["greet"]
    assert completed(tmp_path, "portbook explain x") == []
    (tmp_path / "portbook.toml").write_text("[broken\n")
    assert completed(tmp_path, "portbook call gr") == []


@pytest.mark.parametrize("words", ["serve my", "call --toolset my"])
def test_a_shell_is_asked_for_files_where_a_toolset_is_named(words: str, tmp_path: Path) -> None:
    words = f"portbook {words}"
    at = str(len(words.split()) - 1)
    asked = environment(_PORTBOOK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=at)
    assert run(cwd=tmp_path, env=asked).out == b"file,my\n"


def test_an_unknown_command_completes_nothing_and_says_nothing(tmp_path: Path) -> None:
    for words, at in (("portbook nope x", "2"), ("portbook nope ", "2"), ("portbook audit nope ", "3")):
        asked = environment(_PORTBOOK_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=at)
        finished = run(cwd=tmp_path, env=asked)
        assert (finished.out.strip(), finished.err) == (b"", "")


def test_clients_of_export_are_completed(tmp_path: Path) -> None:
    assert completed(tmp_path, "portbook export cli") == ["client"]
    assert completed(tmp_path, "portbook export client curs") == ["cursor"]
    assert "claude-desktop" in completed(tmp_path, "portbook export client c")


@pytest.mark.parametrize("given", [(), ("tcsh",)])
def test_a_shell_that_is_missing_or_unknown_is_told_on_one_line_with_those_there_are(
    given: tuple[str, ...], tmp_path: Path
) -> None:
    finished = run("completion", *given, cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    first = finished.err.splitlines()[0]
    assert first.startswith("portbook: error: ")
    assert all(shell in first for shell in ("bash", "zsh", "fish"))
    assert "\\" not in first
