"""What a test's boundary is made of: settings inline and from files, and nothing of the machine around it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from portbook import BadBundle, BadTool
from portbook.testing import BadSettings, TestClient
from support.shop_toolset import LARGE_REFUNDS, toolset

TOOLS = """
from portbook import Toolset

toolset = Toolset("shop")

@toolset.tool(effect="write")
def refund(order: int, cents: int) -> int:
    return cents
"""

CONFIG = f"""
[python]
toolsets = ["tools.py"]

[policy]
approval = "writes"

[[keys.allow]]
name = "clerk"
sha256 = "{hashlib.sha256(b"a key that no test knows").hexdigest()}"
tools = ["refund"]

[store]
path = "approvals.db"

[approvals]
wait_s = 60
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(CONFIG)
    return tmp_path / "portbook.toml"


def test_a_settings_file_is_in_force_with_the_toolsets_beside_it(config: Path) -> None:
    with TestClient(config=config) as client:
        clerk = client.as_caller("clerk")  # by the name in the file: its key is none of the test's business
        result = clerk.call("refund", order=5, cents=1)
        assert (result.reason, result.rule) == ("APPROVAL_REQUIRED", "approval")
        client.approve(result)
        assert clerk.call("refund", order=5, cents=1).value == 1
    assert sorted(path.name for path in config.parent.iterdir() if path.is_file()) == [
        "portbook.toml",
        "tools.py",
    ]


def test_what_stands_inline_wins_over_the_file(config: Path) -> None:
    with TestClient(config=str(config), policy={"approval": "never"}) as client:
        assert client.call("refund", order=5, cents=1).value == 1


def test_toolsets_that_are_given_are_served_instead_of_those_of_the_file(config: Path) -> None:
    with TestClient(toolset, config=config) as client:
        assert "stock" in client.tools()
        client.approve(client.call("refund", order=5, cents=1))
        assert client.call("refund", order=5, cents=1).value == {"refunded": 1}


def test_a_toolset_can_be_a_file_or_a_module(config: Path) -> None:
    for source in (config.with_name("tools.py"), str(config.with_name("tools.py")), "support.shop_toolset"):
        with TestClient(source) as client:
            assert "refund" in client.tools()


def test_nothing_around_the_test_is_looked_at(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(config.parent)
    monkeypatch.setenv("PORTBOOK_CONFIG", str(config))
    monkeypatch.setenv("PORTBOOK_APPROVAL", "always")
    monkeypatch.setenv("PORTBOOK_OPERATOR_KEY", "short")
    (config.parent / "schemas").mkdir()
    with TestClient(toolset) as client:
        assert client.call("refund", order=5, cents=1).is_ok
        assert "docs.search" not in client.tools()
        assert client.warnings == []


def test_the_environment_is_the_one_that_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"redaction": {"secrets": ["SHOP_SECRET"]}}
    monkeypatch.setenv("SHOP_SECRET", "shelf of the process")
    with TestClient(toolset, settings=settings, environ={"SHOP_SECRET": "shelf 3"}) as client:
        assert client.read("shop://3").text == "[redacted]"
        assert client.read("shop://4").text == "shelf 4"
    with TestClient(toolset, settings=settings) as client:
        assert client.warnings == [
            "settings=: the environment variable SHOP_SECRET is not set; its value is not redacted"
        ]


def test_variables_of_the_given_environment_set_settings(config: Path, tmp_path: Path) -> None:
    with TestClient(environ={"PORTBOOK_CONFIG": str(config)}) as client:
        assert client.call("refund", order=5, cents=1).reason == "APPROVAL_REQUIRED"
    (tmp_path / "assets").mkdir()
    with TestClient(environ={"SYN_SCHEMAS_DIR": str(tmp_path / "assets")}) as client:
        assert "list_schemas" in client.tools()
    with pytest.raises(BadSettings, match=r"\$PORTBOOK_PORT: server.port must be a whole number"):
        TestClient(toolset, environ={"PORTBOOK_PORT": "many"})


@pytest.mark.parametrize("given", ["settings", "environ"])
def test_a_schema_that_would_be_fetched_is_refused(given: str) -> None:
    uri = "HTTPS://schemas.example.com/schema.json"
    ways: dict[str, Any] = {
        "settings": {"settings": {"schema_override_uri": uri}},
        "environ": {"environ": {"PORTBOOK_SCHEMA_OVERRIDE_URI": uri}},
    }
    place = {"settings": "settings=", "environ": r"\$PORTBOOK_SCHEMA_OVERRIDE_URI"}[given]
    with pytest.raises(BadSettings, match=f"{place}: schema_override_uri is fetched .*; name a file"):
        TestClient(toolset, **ways[given])


def test_a_schema_in_a_file_can_be_named(tmp_path: Path) -> None:
    with TestClient(toolset, settings={"schema_override_uri": str(tmp_path / "none.json")}) as client:
        assert "none.json" in client.warnings[0]


@pytest.mark.parametrize("wrong", ["ada", b"ada", 5])
def test_callers_that_are_no_list_are_the_tests_mistake(wrong: Any) -> None:
    with pytest.raises(TypeError, match="callers= is a list of names, or a mapping"):
        TestClient(toolset, callers=wrong)


def test_what_is_given_inline_is_not_looked_for_in_the_file(config: Path) -> None:
    with pytest.raises(BadSettings, match=r"^policy=: policy.rules\[0\]"):
        TestClient(config=config, policy={"rules": [{"name": "x", "acton": "deny"}]})


def test_docs_search_is_there_where_the_test_wants_it() -> None:
    with TestClient(toolset, settings={"docs": {"enabled": True}}) as client:
        assert "docs__search" in client.tools()


def test_doubts_are_warnings() -> None:
    rule = {"name": "typo", "tools": ["refnd"], "action": "deny"}
    with TestClient(toolset, policy={"rules": [rule]}) as client:
        assert client.warnings == [
            "policy=: rule 'typo' matches nothing that is served; did you mean refund?"
        ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": {"aproval": "always"}}, r"policy=: unknown setting .*; did you mean policy.approval"),
        ({"policy": {"approval": "often"}}, r"policy=: policy.approval must be one of never, writes"),
        ({"policy": {"rules": [{"name": "x", "action": "alow"}]}}, r"^policy=: policy.rules\[0\]"),
        ({"settings": {"policy": {"rules": [{"name": "x"}]}}}, r"^settings=: policy.rules\[0\]"),
        ({"settings": {"redaction": {"patterns": ["("]}}}, r"^settings=: redaction\.patterns"),
        ({"settings": {"http": {"shop": {"base": "x"}}}}, r"^settings=: http.shop"),
        ({"settings": {"polcy": {}}}, r"settings=: unknown setting 'polcy'; did you mean policy"),
        ({"settings": {"policy": 5}}, r"settings=: policy must be a table"),
        ({"callers": ["operator"]}, r"callers=: keys.allow 'operator': this name is reserved"),
        ({"callers": {"ada": ["["]}}, r"callers=: keys.allow 'ada': bad pattern"),
        ({"config": "nowhere.toml"}, r"nowhere.toml: cannot be read"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_meant_are_named(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSettings, match=words):
        TestClient(toolset, **given)


def test_a_toolset_that_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    with pytest.raises(BadTool, match=r"nowhere\.py: no such file"):
        TestClient(tmp_path / "nowhere.py")
    (tmp_path / "broken.py").write_text("import nothing_like_this\n")
    with pytest.raises(BadTool, match=r"broken.py:1:1: cannot be imported: ModuleNotFoundError"):
        TestClient(tmp_path / "broken.py")
    with pytest.raises(BadTool, match="twice"):
        TestClient(toolset, "support.shop_toolset")


def test_what_cannot_be_served_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "envelope.schema.json").write_text("[]")
    with pytest.raises(BadBundle, match=r"envelope\.schema\.json"):
        TestClient(toolset, settings={"schemas": {"root": str(tmp_path)}})
    assert toolset._watchers == []


def test_rules_are_in_force_in_their_order() -> None:
    with TestClient(toolset, policy=LARGE_REFUNDS) as client:
        assert client.call("refund", order=5, cents=9_999).decision == "allow"
        assert client.call("refund", order=5, cents=10_000).decision == "ask"
