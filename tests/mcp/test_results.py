"""Results as a revision has them, checked before they leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portbook.protocol.message_validation import RESULT
from support.every_revision import VALIDATOR, call, every_revision
from support.in_process_connection import Connection, params


@pytest.mark.covers("001.outgoing.checked")
@every_revision
def test_a_result_that_breaks_its_schema_never_leaves(connection: Connection, revision: str) -> None:
    connection.open(revision)
    answer = connection.request("tools/call", call(revision, "wrong_result"))
    assert answer["error"]["code"] == -32603
    assert "canary" not in json.dumps(answer)
    assert "violations" not in answer["error"]["data"]
    assert connection.sink.records[-1]["error"]["violations"][0]["message"] == "expected integer"  # type: ignore[index,call-overload]


SHAPES = """
from typing import Any
from portbook import Toolset
from pydantic import BaseModel
toolset = Toolset("shapes")
class Node(BaseModel):
    name: str
    children: list["Node"] = []
@toolset.tool
def model() -> Node: return Node(name="a", children=[Node(name="b")])
@toolset.tool
def models() -> list[Node]: return [Node(name="a")]
@toolset.tool
def maybe() -> Node | None: return Node(name="a")
@toolset.tool
def nothing() -> None: ...
@toolset.tool
def anything(): return {"a": 1}
@toolset.tool
def any_list() -> Any: return [1]
@toolset.tool
def number() -> float: return 1.5
@toolset.tool
def free(value: Any) -> dict[str, Any]: return {"value": value}
"""


@every_revision
def test_results_of_every_shape_fit_the_revision_and_their_listed_schema(
    tmp_path: Path, revision: str
) -> None:
    import jsonschema

    tools = tmp_path / "shapes.py"
    tools.write_text(SHAPES)
    connection = Connection(tools=tools).open(revision)
    listed = connection.request("tools/list", params(revision))["result"]["tools"]
    assert len(listed) == 8
    for tool in listed:
        arguments = {"value": 1} if tool["name"] == "free" else {}
        answer = connection.request("tools/call", call(revision, tool["name"], **arguments))
        assert "result" in answer, (tool["name"], answer)
        result = answer["result"]
        VALIDATOR.validate("tools/call" + RESULT, result, revision)
        if "outputSchema" in tool:
            jsonschema.Draft202012Validator(tool["outputSchema"]).validate(result["structuredContent"])
        elif revision < "2025-06-18":
            assert "structuredContent" not in result
