"""`portbook tools --tree`: by where tools come from, and by tag."""

from __future__ import annotations

import json
from pathlib import Path

from support.portbook_process import run
from support.pseudo_terminal import on_a_terminal
from support.shop_api import operation, write_shop

FUNCTION = """
from portbook import Toolset

toolset = Toolset("own")

@toolset.tool(effect="read")
def count() -> int:
    return 0
"""


def write(folder: Path, settings: str = "") -> None:
    write_shop(
        folder,
        f'base_url = "https://a.example"\n{settings}',
        operation("get_order", tags=["orders"]),
        operation("refund", tags=["payments", "orders"], deprecated=True),
        operation("ping"),
    )
    (folder / "own.py").write_text(FUNCTION)


def test_a_person_sees_a_tree(tmp_path: Path) -> None:
    write(tmp_path)
    shown, code = on_a_terminal(tmp_path, "tools", "own.py", "--tree")
    assert code == 0
    assert shown == (
        "functions: 1 tool\n"
        "  count (read)\n"
        "http.shop: 3 tools\n"
        "  orders: 2 tools\n"
        "    shop.get_order (read)\n"
        "    shop.refund (read, deprecated)\n"
        "  payments: 1 tool\n"
        "    shop.refund (read, deprecated)\n"
        "  (no tag): 1 tool\n"
        "    shop.ping (read)\n"
    )


def test_a_program_gets_the_same_as_data(tmp_path: Path) -> None:
    write(tmp_path)
    done = run("tools", "--tree", cwd=tmp_path)
    assert json.loads(done.out) == {
        "sources": [
            {
                "source": "http.shop",
                "count": 3,
                "tags": [
                    {"tag": "orders", "tools": ["shop.get_order", "shop.refund"]},
                    {"tag": "payments", "tools": ["shop.refund"]},
                    {"tag": None, "tools": ["shop.ping"]},
                ],
            }
        ]
    }


def test_tags_choose_what_is_served(tmp_path: Path) -> None:
    write(tmp_path, 'tags = ["pay*"]\n')
    [tool] = json.loads(run("tools", cwd=tmp_path).out)["tools"]
    assert (tool["name"], tool["tags"], tool["deprecated"]) == ("shop.refund", ["payments", "orders"], True)
    assert tool["description"] == "Deprecated. Does refund."


def test_a_tag_that_does_not_exist_stops_the_start_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, 'tags = ["ordres"]\n')
    done = run("serve", "--stdio", cwd=tmp_path)
    assert done.code == 2
    assert (
        ":4:1: http.shop.tags names 'ordres', and the document has no such tag; did you mean orders?"
        in done.err
    )


def test_deprecated_operations_can_be_left_out(tmp_path: Path) -> None:
    write(tmp_path, 'deprecated = "leave-out"\n')
    names = [tool["name"] for tool in json.loads(run("tools", cwd=tmp_path).out)["tools"]]
    assert names == ["shop.get_order", "shop.ping"]


def test_many_tools_bring_a_hint_on_how_to_choose_until_the_operator_did(tmp_path: Path) -> None:
    many = [operation(f"op_{number}", tags=["all"]) for number in range(101)]
    base = 'base_url = "https://a.example"\n'
    write_shop(tmp_path, base, *many[:100])
    assert run("tools", "--tree", cwd=tmp_path).err == ""
    write_shop(tmp_path, base, *many)
    hint = run("tools", "--tree", cwd=tmp_path).err
    assert hint.endswith(
        "portbook.toml:2:1: http.shop.openapi becomes 101 tools; choose with tags, include or exclude; "
        "`portbook tools --tree` shows them by tag\n"
    )
    write_shop(tmp_path, base + 'tags = ["*"]\n', *many)
    assert run("tools", "--tree", cwd=tmp_path).err == ""
