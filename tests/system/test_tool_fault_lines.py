"""Standard error and the record name what a tool raised, and the tool's own line that raised it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.in_process_connection import handshake
from support.portbook_process import Finished, over_stdio

# The comment is the type that is told, at its own line.
TOOLS = """
import asyncio
import enum
import json
import sys

from pydantic import BaseModel, field_serializer

from portbook import Image, ToolError, Toolset

toolset = Toolset("failing")


class Code(str, enum.Enum):
    GONE = "GONE"


class Coded(Exception):
    code = Code.GONE


class Order(BaseModel):
    number: int = 1

    @field_serializer("number")
    def shown(self, number: int) -> int:
        raise ToolError("no such order", code=Code.GONE)  # serializes ToolError


class Price(BaseModel):
    cents: int = 1

    @field_serializer("cents")
    def shown(self, cents: int) -> int:
        raise ValueError("canary")  # prices ValueError


@toolset.tool(effect="read")
def means() -> int:
    raise ToolError("no such order", code=Code.GONE)  # means ToolError


@toolset.tool(effect="read")
def coded() -> int:
    raise Coded  # coded Coded


@toolset.tool(effect="read")
def serializes() -> Order:
    return Order()


@toolset.tool(effect="read")
def prices() -> Price:
    return Price()


@toolset.tool(effect="read")
def exits() -> int:
    sys.exit("canary")  # exits SystemExit


@toolset.tool(effect="read", inline=True)
def interrupts() -> int:
    raise KeyboardInterrupt  # interrupts KeyboardInterrupt


@toolset.tool(effect="read")
async def exits_late() -> int:
    sys.exit("canary")  # exits_late SystemExit


@toolset.tool(effect="read")
async def cancels() -> int:
    raise asyncio.CancelledError  # cancels CancelledError


@toolset.tool(effect="read")
async def cancels_itself() -> int:
    asyncio.current_task().cancel()
    await asyncio.sleep(60)  # cancels_itself CancelledError


async def fail() -> None:
    raise ValueError("canary")


@toolset.tool(effect="read")
async def groups() -> int:
    async with asyncio.TaskGroup() as group:  # groups ExceptionGroup
        group.create_task(fail())


@toolset.tool(effect="read")
def parses() -> int:
    return json.loads("canary")  # parses JSONDecodeError


@toolset.tool(effect="read")
def draws() -> Image:
    return Image(path="canary.png")  # draws FileNotFoundError


@toolset.tool(effect="read")
def draws_words() -> Image:
    return Image(path=__file__)  # draws_words ValueError
"""
EXPECTED = {
    name: (kind, number)
    for number, line in enumerate(TOOLS.splitlines(), 1)
    for name, kind in re.findall(r"# (\w+) (\w+)$", line)
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faults")


@pytest.fixture(scope="module")
def served(folder: Path) -> Finished:
    (folder / "failing.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text('[python]\ntoolsets = ["failing.py"]\n')
    messages = [("initialize", handshake("2025-06-18"))]
    messages += [("tools/call", {"name": name, "arguments": {}}) for name in EXPECTED]
    frames = [
        json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": params}).encode()
        for at, (method, params) in enumerate(messages)
    ]
    return over_stdio(*frames, cwd=folder)


@pytest.mark.parametrize("name", EXPECTED)
def test_the_line_names_the_type_and_the_tools_own_frame(name: str, served: Finished, folder: Path) -> None:
    kind, line = EXPECTED[name]
    place = re.escape(f"{folder}/failing.py:{line}")
    assert re.search(f"^portbook: tool {name} raised {kind} at {place} \\(request ", served.err, re.MULTILINE)
    records = "".join(path.read_text() for path in folder.rglob("2*.jsonl"))
    assert f"{kind} at " in records
    assert "canary" not in served.err + records


@pytest.mark.parametrize("name", ["means", "coded", "serializes"])
def test_a_code_of_an_enum_is_its_value(name: str, served: Finished) -> None:
    [answer] = [each for each in served.answers if each["id"] == [*EXPECTED].index(name) + 1]
    result = answer["result"]
    assert result["_meta"]["portbook/error"]["code"] == "GONE"
    assert result["_meta"]["portbook/refusal"]["reason"] == "TOOL_ERROR"
    assert "Code.GONE" not in json.dumps(answer)
