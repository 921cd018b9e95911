"""What a desktop bundle says of itself."""

from __future__ import annotations

import tomllib
from typing import Any, cast

import pytest

from portbook.cli.export_bundle import BundleManifest
from portbook.version import __version__


def made(**more: Any) -> BundleManifest:
    plain = {
        "name": "greetings",
        "title": None,
        "version": "1.0.0",
        "description": "Says hello.",
        "author": "Ada",
        "tools": [("greet", "Say hello.\nMore.")],
        "toolsets": ["tools.py"],
        "config": "portbook.toml",
    }
    return BundleManifest(**{**plain, **more})


def test_the_command_names_only_what_is_in_the_bundle_or_asked_for() -> None:
    server = cast("Any", made(toolsets=["tools.py", "shop.tools"]).manifest()["server"])
    assert server["entry_point"] == "server/tools.py"
    assert server["mcp_config"]["args"][-7:] == [
        "--stdio",
        "--config",
        "${__dirname}/server/portbook.toml",
        "--log-dir",
        "${user_config.records}/runs",
        "${__dirname}/server/tools.py",
        "shop.tools",
    ]


def test_a_person_is_asked_for_each_secret_and_it_is_kept_as_one() -> None:
    manifest = cast("Any", made(variables=["SHOP_KEY"]).manifest())
    assert manifest["server"]["mcp_config"]["env"]["SHOP_KEY"] == "${user_config.env_shop_key}"
    asked = manifest["user_config"]["env_shop_key"]
    assert (asked["required"], asked["sensitive"], asked["title"]) == (True, True, "SHOP_KEY")


def test_a_tool_has_one_line_of_its_description() -> None:
    assert made().manifest()["tools"] == [{"name": "greet", "description": "Say hello."}]


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        ({}, f"portbook=={__version__}"),
        ({"has_yaml": True}, f"portbook[yaml]=={__version__}"),
    ],
)
def test_the_project_needs_this_portbook_with_the_extras_of_its_documents(
    more: dict[str, Any], wanted: str
) -> None:
    assert tomllib.loads(made(**more).project())["project"]["dependencies"] == [wanted]


def test_a_wheel_that_is_carried_along_is_the_source() -> None:
    project = tomllib.loads(made(wheel="portbook-1-py3-none-any.whl").project())
    assert project["tool"]["uv"]["sources"]["portbook"] == {"path": "wheels/portbook-1-py3-none-any.whl"}
