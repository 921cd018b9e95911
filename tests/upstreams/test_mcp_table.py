"""`[mcp.ALIAS]`: every key, its default, and every mistake with its path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.pins.on_change import OnChange, PinSettings, Reaction
from portbook.tools.spec import Effect
from portbook.upstreams.mcp_table import DeclaredUpstream, ValueSource, read_mcp

FOLDER = Path("/settings")


class Wrong(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Wrong(f"{'.'.join(map(str, path))} {sentence}")


def read(alias: str = "git", **keys: Any) -> DeclaredUpstream:
    [declared] = read_mcp({alias: keys}, FOLDER, complain)
    return declared


def test_defaults_are_those_of_the_documentation() -> None:
    assert read(command=["npx", "x"]) == DeclaredUpstream("git", "stdio", command=("npx", "x"), folder=FOLDER)


def test_every_key_is_read() -> None:
    declared = read(
        url="https://example.com/mcp",
        headers={"A": "b", "C": {"file": "token"}, "D": {"command": ["pass", "show"]}},
        tools=["get_*"],
        prefix=False,
        effects={"find": "read"},
        validation="warn",
        may_ask=["sampling"],
        timeout_ms=500,
        start="eager",
        idle_s=0,
        isolation="session",
    )
    assert declared.headers == {
        "A": ValueSource(text="b"),
        "C": ValueSource(file=FOLDER / "token"),
        "D": ValueSource(command=("pass", "show")),
    }
    assert (declared.tools, declared.has_prefix, declared.is_enforced) == (("get_*",), False, False)
    assert (declared.effects, declared.may_ask) == ({"find": Effect.READ}, frozenset({"sampling"}))
    assert (declared.timeout_ms, declared.start, declared.idle_s) == (500, "eager", 0)
    assert (declared.transport, declared.isolation) == ("http", "session")


@pytest.mark.parametrize("alias", ["Git", "a__b", "_a", "a_", "a-b", "a.b", "", "x" * 41])
def test_an_alias_that_could_be_mistaken_is_refused(alias: str) -> None:
    with pytest.raises(Wrong, match="not an alias"):
        read(alias, command=["x"])


def test_who_approves_and_what_a_change_leads_to_are_read() -> None:
    assert read(command=["x"]).pins == PinSettings("lock")
    found = read(command=["x"], trust="first-use", on_change={"words": "block"}).pins
    assert found == PinSettings("first-use", OnChange(words=Reaction.BLOCK))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"command": ["x"], "effects": {"find": "kind"}}, "mcp.git.effects.find must be one of"),
        ({"command": ["x"], "env": {"A B": "c"}}, "not the name of a variable"),
        ({"command": ["x"], "env": {"A": {"env": "B", "file": "c"}}}, "mcp.git.env.A must be a string"),
        ({"command": ["x", "a\0b"]}, r"mcp.git.command .*leave out \\u0000"),
        ({"command": ["x"], "cwd": "a\0b"}, r"mcp.git.cwd .*leave out \\u0000"),
        ({"command": ["x"], "env": {"A": "b\0"}}, r"mcp.git.env.A .*leave out \\u0000"),
        ({"command": ["x"], "tools": ["a\nb"]}, "names as the server has them"),
        ({"url": "https://a.example/mcp", "headers": {"X-A": "a\r\nb"}}, "cannot be sent in a header"),
        ({"url": "http://a/", "transport": "stdio"}, "must be http"),
        ({"command": ["x"], "transport": "http"}, "must be stdio"),
    ],
)
def test_a_mistake_is_named_with_its_path(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(Wrong, match=said.replace("[", r"\[")):
        read(**keys)


def test_a_program_starts_in_the_folder_of_the_settings_unless_cwd_says_otherwise() -> None:
    assert read(command=["x"]).starts_in == FOLDER
    assert read(command=["x"], cwd="below").starts_in == FOLDER / "below"
    assert read(command=["x"], cwd="/else").starts_in == Path("/else")
    assert read(command=["x"], cwd="inherit").starts_in == Path()


def test_a_value_of_the_environment_is_a_secret_unless_the_settings_say_otherwise() -> None:
    found = read(command=["x"], env={"A": {"env": "A"}, "B": {"env": "B", "secret": False}}).env
    assert (found["A"].is_secret, found["B"].is_secret) == (True, False)
