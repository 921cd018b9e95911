"""Commands that are misspelt, and the one tone of errors, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.portbook_process import run


@pytest.mark.parametrize(
    ("words", "said", "see"),
    [
        ("cal", "there is no command 'cal'; did you mean call?", "portbook"),
        ("approvals lst", "there is no command 'lst'; did you mean list?", "portbook approvals"),
        ("keys creat", "there is no command 'creat'; did you mean create?", "portbook keys"),
        ("audit verfy", "there is no command 'verfy'; did you mean verify?", "portbook audit"),
        ("call", "missing argument 'TOOL'", "portbook call"),
        ("tools --jsno", "no such option '--jsno'; did you mean --json?", "portbook tools"),
        ("serve --log", "no such option '--log'; did you mean --log-dir?", "portbook serve"),
        ("serve --std", "no such option '--std'; did you mean --stdio?", "portbook serve"),
        ("--config x serve", "no such option '--config'; options of a command follow its name", "portbook"),
        ("serve --config=", "invalid value for '--config': it is empty; name a file", "portbook serve"),
        ("serve --log-dir=", "invalid value for '--log-dir': it is empty; name a folder", "portbook serve"),
        ("serve --config", "option '--config' requires an argument", "portbook serve"),
        ("audit show --config", "option '--config' requires an argument", "portbook audit show"),
    ],
)
def test_a_wrong_command_line_is_told_in_the_tone_of_every_error(
    words: str, said: str, see: str, tmp_path: Path
) -> None:
    finished = run(*words.split(), cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert finished.err == f"portbook: error: {said}\nportbook: see `{see} --help`\n"


@pytest.mark.parametrize("words", ["", "policy", "audit", "keys", "schema", "envelope", "export"])
def test_a_group_without_a_command_shows_its_help_line_by_line(words: str, tmp_path: Path) -> None:
    finished = run(*words.split(), cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert finished.err == run(*words.split(), "--help", cwd=tmp_path).out.decode()
    assert "\nCommands:\n" in finished.err


def test_an_unlike_command_is_answered_with_where_they_are_listed(tmp_path: Path) -> None:
    finished = run("policy", "xyzzy", cwd=tmp_path)
    said = "there is no command 'xyzzy'; `portbook policy --help` lists the commands"
    assert (finished.code, finished.err) == (2, f"portbook: error: {said}\n")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("call --json", 2, "missing argument 'TOOL'"),
        ("keys revoke x --json", 1, "no active key has this id or name; `portbook keys list` lists the keys"),
        ("approvals show 0123 --json", 1, "there is no such approval"),
        ("explain nothing --json", 4, "there is no tool 'nothing'; `portbook tools` lists what is served"),
        ("audit show nothing --json", 2, "no such folder"),
    ],
)
def test_where_json_is_asked_for_errors_are_json(words: str, code: int, said: str, tmp_path: Path) -> None:
    finished = run(*words.split(), cwd=tmp_path)
    assert (finished.code, finished.err) == (code, "")
    (problem,) = json.loads(finished.out)["error"]["problems"]
    assert said in problem["message"]


def test_an_error_of_the_settings_has_its_place_as_json(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text("[server]\nprot = 1\n")
    for words in ("tools --json", "call x --json", "approvals --json", "keys list --json"):
        finished = run(*words.split(), cwd=tmp_path)
        (problem,) = json.loads(finished.out)["error"]["problems"]
        assert (finished.code, problem["file"], problem["line"], problem["column"]) == (
            2,
            "portbook.toml",
            2,
            1,
        )
