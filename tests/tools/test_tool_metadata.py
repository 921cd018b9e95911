"""Tags and `_meta` of tools: for clients, for policies, and for people; mistakes are told at declaration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook import BadTool, Toolset
from portbook.protocol.message_validation import RESULT
from support.every_revision import VALIDATOR, every_revision
from support.in_process_connection import Connection, params
from support.portbook_process import run

SHOP = """
from portbook import Context, Image, Toolset

toolset = Toolset("shop")


@toolset.tool(effect="write", tags=["money", "orders"], meta={"example.com/team": "billing"})
def refund(cents: int) -> int:
    return cents


@toolset.tool(effect="read", tags=("orders",))
def look(ctx: Context) -> str | None:
    return ctx.caller


@toolset.tool(effect="read")
def logo() -> Image:
    return Image(path="logo.svg")
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "logo.svg").write_text("<svg/>")
    (tmp_path / "portbook.toml").write_text(
        '[python]\ntoolsets = ["shop.py"]\n[[policy.rules]]\nname = "no money"\naction = "deny"\n'
        'tags = ["mon*"]\n'
    )
    return tmp_path


@every_revision
def test_clients_find_tags_and_meta_where_their_revision_has_them(shop: Path, revision: str) -> None:
    connection = Connection(tools=shop / "shop.py").open(revision)
    listed = connection.request("tools/list", params(revision))["result"]
    tools = {tool["name"]: tool for tool in listed["tools"]}
    expected = {"example.com/team": "billing", "portbook/tags": ["money", "orders"]}
    assert tools["refund"].get("_meta") == (expected if revision >= "2025-06-18" else None)
    assert "_meta" not in tools["logo"]
    VALIDATOR.validate("tools/list" + RESULT, listed, revision)


def test_a_rule_selects_tools_by_tag_at_the_command_line(shop: Path) -> None:
    denied = run("call", "refund", "cents=5", cwd=shop)
    assert (denied.code, "no money" in denied.err) == (3, True)
    assert run("call", "look", cwd=shop).code == 0
    told = json.loads(run("explain", "refund", "cents=5", cwd=shop).out)
    assert (told["decision"], told["rule"]) == ("deny", "no money")


def test_a_tag_that_nothing_has_is_told_with_the_nearest_one(shop: Path) -> None:
    (shop / "portbook.toml").write_text(
        '[python]\ntoolsets = ["shop.py"]\n[[policy.rules]]\nname = "no"\naction = "deny"\ntags = ["mony"]\n'
    )
    said = run("check", cwd=shop)
    assert said.out.decode() == (
        "portbook.toml:6:1: warning: rule 'no' names the tag 'mony', which nothing that is served has; "
        "did you mean money?\n"
    )


def test_tools_are_shown_by_tag(shop: Path) -> None:
    tree = json.loads(run("tools", "--tree", cwd=shop).out)["sources"][0]
    assert {group["tag"]: group["tools"] for group in tree["tags"]} == {
        "money": ["refund"],
        "orders": ["look", "refund"],
        None: ["logo"],
    }
    tools = {tool["name"]: tool for tool in json.loads(run("tools", cwd=shop).out)["tools"]}
    assert tools["refund"]["tags"] == ["money", "orders"]
    assert "tags" not in tools["logo"]


def test_a_tool_learns_its_caller_and_reads_a_picture_from_its_file(shop: Path) -> None:
    assert run("call", "look", cwd=shop).out == b'"anonymous"\n'
    assert b'"mimeType":"image/svg+xml"' in run("call", "logo", cwd=shop).out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"tags": "money"}, "tags must be a list of texts of 1 to 100 printable characters"),
        ({"tags": [""]}, "tags must be a list of texts of 1 to 100 printable characters"),
        ({"tags": [5]}, "tags must be a list of texts of 1 to 100 printable characters"),
        ({"meta": ["a"]}, "meta must be a dict of JSON values"),
        ({"meta": {"a": {1}}}, "meta must be a dict of JSON values: "),
        ({"meta": {"a b": 1}}, "meta: use keys such as example.com/name: a prefix with a slash, and a name"),
        ({"meta": {5: 1}}, "meta: use keys such as example.com/name: a prefix with a slash, and a name"),
        ({"meta": {"portbook/tags": 1}}, "meta: the prefix 'portbook' is reserved; use one of your own"),
        ({"meta": {"dev.mcp/x": 1}}, "meta: the prefix 'dev.mcp' is reserved; use one of your own domain"),
        (
            {"meta": {"io.modelcontextprotocol/x": 1}},
            "meta: the prefix 'io.modelcontextprotocol' is reserved",
        ),
    ],
)
def test_a_mistake_is_told_where_it_is_made(given: dict[str, Any], says: str) -> None:
    def tool() -> int:
        return 1

    with pytest.raises(BadTool) as raised:
        Toolset("x").tool(**given)(tool)
    assert str(raised.value).startswith(f"tool 'tool': {says}")


def test_repeated_tags_are_one_and_a_set_is_in_order() -> None:
    toolset = Toolset("x")

    @toolset.tool(tags=["b", "a", "b"])
    def one() -> int:
        return 1

    @toolset.tool(tags={"b", "a"})
    def two() -> int:
        return 2

    assert [spec.tags for spec in toolset.specs()] == [("b", "a"), ("a", "b")]
