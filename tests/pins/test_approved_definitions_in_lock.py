"""Approved definitions in `portbook.lock`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.fetched_documents import DocumentLock, LockedDocument
from portbook.pins.approved_definitions_in_lock import PinLock, approve
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.stores.lock_file import LOCK_NAME

SEEN = ServerDefinitions.observed(
    [
        {
            "name": "b",
            "inputSchema": {"type": "object", "required": ["z", "a"]},
            "vendor": {"b": 1, "a": None},
        },
        {"name": "a", "inputSchema": {}, "description": "First line.\n\nThird line.\u200b"},
    ],
    [{"name": "p", "arguments": [{"name": "x"}]}],
    "One\ntwo",
)

TEXT = """\
{
  "mcp": {
    "github": {
      "instructions": [
        "One",
        "two"
      ],
      "prompts": {
        "p": {
          "arguments": [
            {
              "name": "x"
            }
          ]
        }
      },
      "tools": {
        "a": {
          "description": [
            "First line.",
            "",
            "Third line.\\u200b"
          ],
          "inputSchema": {}
        },
        "b": {
          "inputSchema": {
            "required": [
              "z",
              "a"
            ],
            "type": "object"
          },
          "vendor": {
            "a": null,
            "b": 1
          }
        }
      }
    }
  }
}
"""


def test_the_text_is_the_same_for_the_same_definitions_and_reads_back(tmp_path: Path) -> None:
    approve(tmp_path, {"github": SEEN})
    assert (tmp_path / LOCK_NAME).read_text("utf-8") == TEXT
    assert PinLock.read(tmp_path).servers == {"github": SEEN}
    approve(tmp_path, PinLock.read(tmp_path).servers)
    assert (tmp_path / LOCK_NAME).read_text("utf-8") == TEXT


def test_other_servers_and_fetched_documents_stay(tmp_path: Path) -> None:
    document = LockedDocument("https://shop.example/openapi.json", "shop.json", "a" * 64)
    DocumentLock(tmp_path).with_document(document).write()
    approve(tmp_path, {"one": SEEN, "two": ServerDefinitions()})
    approve(tmp_path, {"one": None, "three": ServerDefinitions(instructions="")})
    assert PinLock.read(tmp_path).servers == {
        "three": ServerDefinitions(instructions=""),
        "two": ServerDefinitions(),
    }
    assert DocumentLock.read(tmp_path).documents == (document,)
    DocumentLock.read(tmp_path).write()
    assert "two" in PinLock.read(tmp_path).servers


def test_without_a_lock_nothing_is_pinned(tmp_path: Path) -> None:
    assert PinLock.read(tmp_path) == PinLock()


TOOL: dict[str, Any] = {"inputSchema": {}}


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (7, "/mcp/a: must be an object"),
        ({"resources": {}}, "/mcp/a/resources: is not one of instructions, prompts, tools"),
        ({"tools": []}, "/mcp/a/tools: must be an object"),
        ({"tools": {"x/y": 7}}, "/mcp/a/tools/x~1y: must be an object"),
        ({"tools": {"t": {}}}, "/mcp/a/tools/t: must have an `inputSchema`"),
        ({"tools": {"t": {"inputSchema": True}}}, "/mcp/a/tools/t/inputSchema: must be an object"),
        ({"tools": {"t": {**TOOL, "icons": {}}}}, "/mcp/a/tools/t/icons: must be an array"),
        (
            {"tools": {"t": {**TOOL, "title": 7}}},
            "/mcp/a/tools/t/title: must be a string, or an array of lines",
        ),
        (
            {"tools": {"t": {**TOOL, "title": []}}},
            "/mcp/a/tools/t/title: must be a string, or an array of lines",
        ),
        ({"prompts": {"p": {"description": ["a", 1]}}}, "/mcp/a/prompts/p/description: must be a string"),
        ({"instructions": None, "prompts": None}, "/mcp/a/prompts: must be an object"),
        ({"instructions": {}}, "/mcp/a/instructions: must be a string"),
    ],
)
def test_what_is_no_pin_is_refused_with_its_line_and_never_overwritten(
    tmp_path: Path, entry: Any, message: str
) -> None:
    text = '{"mcp": {\n"a": ' + json.dumps(entry) + "}}"
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(BadLock) as caught:
        PinLock.read(tmp_path)
    assert str(caught.value).startswith(f"portbook.lock:2: {message}")
    assert "restore the file, or remove the section and run `portbook pin` again" in str(caught.value)
    with pytest.raises(BadLock):
        approve(tmp_path, {"b": SEEN})
    assert (tmp_path / LOCK_NAME).read_text() == text


def test_what_could_not_be_read_again_is_not_written(tmp_path: Path) -> None:
    approve(
        tmp_path, {"good": ServerDefinitions.observed([{"name": "t", "inputSchema": {"type": "object"}}])}
    )
    before = (tmp_path / "portbook.lock").read_bytes()
    wrong = ServerDefinitions({"t": {"inputSchema": []}})
    with pytest.raises(BadLock, match="must be an object"):
        approve(tmp_path, {"bad": wrong})
    assert (tmp_path / "portbook.lock").read_bytes() == before
