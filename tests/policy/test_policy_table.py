"""A policy as written: every mistake is found before anything is served, and told with what to do."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.policy import BadPolicy, Limits, read_policy


def read(*rules: dict[str, Any], **limits: Any) -> Any:
    return read_policy(Limits(**limits), rules, [], lambda path: f"p.toml:{path[2] if len(path) > 2 else 0}")


def rule(**members: Any) -> dict[str, Any]:
    return {"name": "r", "action": "deny", **members}


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.covers("002.policy.refused")
@pytest.mark.parametrize(
    ("table", "path", "sentence"),
    [
        case("no name", {"action": "deny"}, "name", "1 to 200 characters"),
        case("an empty name", {"name": "", "action": "deny"}, "name", "1 to 200 characters"),
        case("a name of two lines", rule(name="a\nb"), "name", "1 to 200 characters"),
        case("no action", {"name": "r"}, "action", "one of deny, ask, allow"),
        case("an unlike action", rule(action="zzz"), "action", "must be one of deny, ask, allow"),
        case("a misspelt action", rule(action="denny"), "action", "did you mean deny?"),
        case("an unknown key", rule(tool=["a"]), "tool", "did you mean tools?"),
        case("tools that are no list", rule(tools="a"), "tools", "a list of at least one pattern"),
        case("no tools", rule(tools=[]), "tools", "a list of at least one pattern"),
        case("a bad pattern", rule(tools=["Refund"]), 0, "write 'refund'"),
        case("an unknown effect", rule(effects=["zzz"]), 0, "use read, write, destructive"),
        case("a misspelt effect", rule(effects=["writes"]), 0, "did you mean write?"),
        case("an unknown kind", rule(kinds=["zzz"]), 0, "use tool, resource, prompt"),
        case("a misspelt kind", rule(kinds=["tools"]), 0, "did you mean tool?"),
        case("an empty caller", rule(callers=["a", ""]), 1, "1 to 256 characters"),
        case("where is no table", rule(where=["/a"]), "where", "a table of JSON Pointers"),
        case("no pointer", rule(where={"cents": {}}), "cents", "write '/cents'"),
        case("no schema", rule(where={"/cents": 5}), "/cents", "must be a JSON Schema"),
        case("a broken schema", rule(where={"/cents": {"type": "money"}}), "/cents", "JSON Schema"),
        case("a misspelt keyword", rule(where={"/a": {"maximun": 1}}), "/a", "did you mean maximum?"),
        case("a misspelt keyword inside", rule(where={"/a": {"not": {"minimun": 1}}}), "/a", "minimum?"),
        case(
            "a wildcard", rule(where={"/items/*/cents": {"minimum": 1}}), "/items/*/cents", "not a wildcard"
        ),
        case("a schema that hides its types", rule(where={"/a": {"$ref": "#/$defs/b"}}), "/a", "JSON Schema"),
        case("a pattern that backtracks", rule(where={"/a": {"pattern": "(?=a)b"}}), "/a", "JSON Schema"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_key_and_what_to_write(
    table: dict[str, Any], path: str | int, sentence: str
) -> None:
    with pytest.raises(BadPolicy) as raised:
        read(rule(name="first", tools=["other"]), table)
    assert raised.value.path[:3] == ("policy", "rules", 1)
    assert raised.value.path[-1] == path
    assert sentence in str(raised.value)


@pytest.mark.parametrize(
    ("limits", "key", "sentence"),
    [
        case(
            "a bad domain",
            {"allowed_domains": ("ok.example", "http://x/y")},
            ("allowed_domains", 1),
            "cannot be used: a host",
        ),
        case(
            "a bad network",
            {"allowed_networks": ("10.0.0.0/99",)},
            ("allowed_networks", 0),
            "cannot be used: a network",
        ),
        case("a misspelt verb", {"allowed_methods": ("GTE",)}, ("allowed_methods", 0), "did you mean GET?"),
        case("a misspelt effect", {"effects": ("raed",)}, ("effects", 0), "did you mean read?"),
    ],
)
def test_a_limit_that_cannot_be_meant_is_refused(
    limits: dict[str, Any], key: tuple[str, int], sentence: str
) -> None:
    with pytest.raises(BadPolicy, match=sentence.replace("?", r"\?")) as raised:
        read(**limits)
    assert raised.value.path == ("policy", *key)


WHERE = {"/cents": {"minimum": 1}}


@pytest.mark.covers("002.policy.unreachable")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        case("allow under deny", rule(name="a"), rule(name="b", action="allow")),
        case("ask under deny", rule(name="a"), rule(name="b", action="ask", where=WHERE)),
        case("allow under ask", rule(name="a", action="ask"), rule(name="b", action="allow", tools=["x"])),
        case("the same twice", rule(name="a", tools=["x"]), rule(name="b", tools=["x"])),
        case("a narrower one after", rule(name="a", tools=["x*"]), rule(name="b", tools=["xy", "xz*"])),
        case("the same condition", rule(name="a", where=WHERE), rule(name="b", action="ask", where=WHERE)),
        case("a caller of all", rule(name="a"), rule(name="b", action="ask", callers=["ada"])),
    ],
)
def test_a_rule_that_can_never_decide_is_refused_and_the_other_one_named(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    with pytest.raises(BadPolicy, match=r"can never decide: 'a' at p\.toml:\d always wins") as raised:
        read(first, second)
    assert raised.value.path == ("policy", "rules", 1)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        case("other tools", rule(name="a", tools=["x"]), rule(name="b", tools=["y"])),
        case("a condition above", rule(name="a", where=WHERE), rule(name="b", action="ask")),
        case("deny after a wider allow", rule(name="a", action="allow"), rule(name="b", tools=["x"])),
        case("other callers", rule(name="a", callers=["ada"]), rule(name="b", action="allow")),
        case("another effect", rule(name="a", effects=["write"]), rule(name="b", effects=["read"])),
        case("other conditions", rule(name="a", where=WHERE), rule(name="b", where={"/a": {}})),
    ],
)
def test_rules_that_can_each_decide_live_side_by_side(first: dict[str, Any], second: dict[str, Any]) -> None:
    assert [each.name for each in read(first, second).rules] == ["a", "b"]


def test_two_rules_cannot_have_one_name() -> None:
    with pytest.raises(BadPolicy, match="name of an earlier rule"):
        read(rule(tools=["a"]), rule(tools=["b"]))
