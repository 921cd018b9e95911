"""A vendor's document with what real ones have in them, from the file to the request and the record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import over_stdio, run
from support.threaded_api import upstream

FANS_OUT: dict[str, Any] = {
    f"S{n}": {"allOf": [{"$ref": f"#/components/schemas/S{n + 1}"}] * 2} for n in range(30)
} | {"S30": {"type": "object"}}

DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/#X-Amz-Target=Queue.Send": {
            "post": {
                "operationId": "Send",
                "parameters": [
                    {
                        "name": "X-Amz-Target",
                        "in": "header",
                        "required": True,
                        "schema": {"type": "string", "enum": ["Queue.Send"]},
                    }
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "text": {"type": "string", "pattern": "^(?!x)", "nullable": True}
                                },
                                "required": ["text", "text"],
                            }
                        }
                    }
                },
                "responses": {"200": {"content": {"application/json": {"schema": {"type": "object"}}}}},
            }
        },
        "/costly": {
            "get": {
                "operationId": "costly",
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}
                },
            }
        },
    },
    "components": {"schemas": FANS_OUT},
}


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def settings(folder: Path, port: int, more: str = "", name: str = "api.json") -> None:
    (folder / "portbook.toml").write_text(
        f'[policy]\nallowed_domains = ["127.0.0.1:{port}"]\n'
        f'[http.queue]\nbase_url = "http://127.0.0.1:{port}"\nopenapi = "{name}"\n{more}'
    )


@pytest.mark.covers("002.tools.openapi-vendors")
def test_what_vendors_write_becomes_requests(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    with upstream() as api:
        settings(tmp_path, api.port)
        finished = run("call", "queue.send", "text=hello", cwd=tmp_path)
        assert finished.code == 0, finished.err
        assert api.seen == [("POST", "/")]
        assert api.headers[0]["x-amz-target"] == "Queue.Send"
        assert json.loads(json.loads(finished.out)["given"]) == {"text": "hello"}
    assert "1 pattern is not checked in api.json" in finished.err
    assert "1 of 2 operations of api.json is left out: 1 with an output schema" in finished.err


@pytest.mark.covers("002.tools.openapi-unchecked")
def test_a_result_that_cannot_be_checked_is_given_where_allowed_and_the_records_say_so(
    tmp_path: Path,
) -> None:
    (tmp_path / "api.json").write_text(json.dumps(DOCUMENT))
    with upstream() as api:
        settings(tmp_path, api.port, 'unchecked_outputs = "allow"\n')
        assert run("call", "queue.costly", cwd=tmp_path).code == 0
        assert run("call", "queue.send", "text=hello", cwd=tmp_path).code == 0
    said: dict[str, list[object]] = {"outputChecked": [], "output_checked": []}
    for file in sorted(file for file in (tmp_path / "runs").rglob("*.jsonl") if not file.is_symlink()):
        for line in file.read_text().splitlines():
            record = json.loads(line)
            if "metadata" in record:
                said["outputChecked"].append(record["metadata"].get("outputChecked"))
            elif "status_code" in record:
                said["output_checked"].append(record.get("output_checked"))
    assert said == {"outputChecked": [False, None], "output_checked": [False, None]}


def recursive(steps: int) -> dict[str, Any]:
    """Schemas that double the work at each step, and lead back to the first for the member `a`."""
    steps_of: dict[str, Any] = {
        f"R{n}": {"allOf": [{"$ref": f"#/components/schemas/R{n + 1}"}] * 2} for n in range(steps)
    }
    back = {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/R0"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/R0"}}}}
    return {
        "openapi": "3.1.0",
        "paths": {
            "/give": {"post": {"operationId": "give", "requestBody": body}},
            "/take": {"get": {"operationId": "take", "responses": {"200": body}}},
        },
        "components": {"schemas": {**steps_of, f"R{steps}": back}},
    }


def test_schemas_that_fan_out_and_recurse_are_not_served(tmp_path: Path) -> None:
    """Each alone is allowed; together they would take minutes for a value of thirty bytes."""
    (tmp_path / "api.json").write_text(json.dumps(recursive(12)))
    settings(tmp_path, 1)
    finished = run("tools", "--left-out", "--json", cwd=tmp_path)
    found = {each["tool"]: each["cause"] for each in json.loads(finished.out)["left_out"]}
    assert found == {"queue.give": "input-schema", "queue.take": "output-schema"}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("leaf", [3, None, []])
def test_a_value_that_nests_is_answered_soon(tmp_path: Path, leaf: Any) -> None:
    """Not an assertion about speed: where the work doubles with each level, there is never an answer."""
    (tmp_path / "api.json").write_text(json.dumps(recursive(5)))
    for _ in range(50):
        leaf = {"a": leaf}
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": INITIALIZE},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "tools/call",
            "params": {"name": "queue__give", "arguments": {"body": leaf}},
        },
    ]
    settings(tmp_path, 1)
    finished = over_stdio(*(json.dumps(frame).encode() for frame in frames), cwd=tmp_path)
    answers = {answer["id"]: answer for answer in map(json.loads, finished.out.splitlines())}
    assert answers[2]["result"]["isError"] is True
    assert answers[2]["result"]["_meta"]["portbook/refusal"]["reason"] == "BAD_ARGUMENTS"


def test_a_swagger_document_in_yaml_becomes_requests(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(
        "swagger: '2.0'\n"
        "paths:\n"
        "  /countries:\n"
        "    get:\n"
        "      operationId: find\n"
        "      parameters:\n"
        "        - {name: code, in: query, required: true, type: string, enum: [NO, SE]}\n"
        "      responses: {200: {description: found, schema: {type: object}}}\n"
    )
    with upstream() as api:
        settings(tmp_path, api.port, name="api.yaml")
        finished = run("call", "queue.find", "code=NO", cwd=tmp_path)
        assert finished.code == 0, finished.err
        assert api.seen == [("GET", "/countries?code=NO")]


def test_nothing_that_stands_for_an_operation_is_lost_in_silence(tmp_path: Path) -> None:
    item: dict[str, Any] = {"get": {}, "trace": {}, "PUT": {}, "post": None}
    wrong = {"get": {"parameters": {"a": 1}}, "post": {"security": "x"}}
    document = {"openapi": "3.1.0", "paths": {"/a": item, "/b": None, "/c": wrong}}
    (tmp_path / "api.json").write_text(json.dumps(document))
    settings(tmp_path, 1)
    finished = run("tools", "--left-out", "--json", cwd=tmp_path)
    assert finished.code == 0, finished.err
    found = {each["tool"]: each["method"] for each in json.loads(finished.out)["left_out"]}
    assert found == {
        "queue.post_a": "POST",
        "queue.trace_a": "TRACE",
        "queue.put_a": "PUT",
        "queue.b": None,
        "queue.get_c": "GET",
        "queue.post_c": "POST",
    }


def test_odd_values_in_yaml_and_every_pair_of_a_fragment_reach_the_request(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(
        "openapi: 3.0\n"
        "x-notes: [.nan, !note {a: 1}, !!timestamp 2024-01-01]\n"
        "paths:\n"
        "  /#Action=Find&Version=1:\n"
        "    get:\n"
        "      operationId: find\n"
        "      responses: {200: {content: {application/json: {schema: {type: object}, example: .inf}}}}\n"
    )
    with upstream() as api:
        settings(tmp_path, api.port, name="api.yaml")
        finished = run("call", "queue.find", cwd=tmp_path)
        assert finished.code == 0, finished.err
        assert api.seen == [("GET", "/?Action=Find&Version=1")]


def test_a_value_that_no_program_can_hold_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(
        r"""{"openapi": "3.1.0", "x-limit": 1e999, "paths": {"/a": {"get": {
            "operationId": "find", "x-note": "\ud800",
            "parameters": [{"name": "n", "in": "query", "example": "\udc00",
                            "schema": {"type": "number", "maximum": 1e999, "minimum": 1}}]}}}}"""
    )
    with upstream() as api:
        settings(tmp_path, api.port)
        assert run("call", "queue.find", "n=7", cwd=tmp_path).code == 0
        assert run("call", "queue.find", "n=0", cwd=tmp_path).code != 0
        assert api.seen == [("GET", "/a?n=7")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("none.json", None, "none.json: does not exist; check its name"),
        ("api.yaml", "openapi: 3.1.0\npaths: {\n", "api.yaml: not YAML 1.2 (line "),
    ],
)
def test_a_document_that_cannot_be_read_says_why_and_where(
    tmp_path: Path, name: str, text: str | None, said: str
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    settings(tmp_path, 1, name=name)
    finished = run("tools", cwd=tmp_path)
    assert finished.code != 0
    assert said in finished.err


def test_an_operation_whose_name_got_a_digest_is_named_by_its_method_and_path(tmp_path: Path) -> None:
    same: dict[str, Any] = {"operationId": "find", "responses": {}}
    paths = {path: {"get": same, "post": same} for path in ("/a", "/b")}
    (tmp_path / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    more = (
        'include = ["GET /a", "POST *"]\nexclude = ["* /b"]\neffects = { "POST /a" = "read" }\n'
        '[http.queue.tools."GET /a"]\neffect = "destructive"\n'
    )
    settings(tmp_path, 1, more)
    listed = json.loads(run("tools", "--json", cwd=tmp_path).out)["tools"]
    found = {tool["name"]: tool["effect"] for tool in listed if tool["name"].startswith("queue.")}
    assert sorted(found.values()) == ["destructive", "read"]
    # A name that several have is none of a tool; the message says what to write instead.
    settings(tmp_path, 1, 'include = ["find"]\n')
    finished = run("tools", cwd=tmp_path)
    assert finished.code != 0
    assert "names 'find', which is not the name of a tool" in finished.err
    assert "or 'GET /a'" in finished.err


def test_a_read_only_property_is_not_sent(tmp_path: Path) -> None:
    properties: dict[str, Any] = {"id": {"type": "string", "readOnly": True}, "name": {"type": "string"}}
    schema = {"type": "object", "required": ["id", "name"], "properties": properties}
    put = {"operationId": "put", "requestBody": {"content": {"application/json": {"schema": schema}}}}
    (tmp_path / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": {"/a": {"put": put}}}))
    with upstream() as api:
        settings(tmp_path, api.port)
        assert run("call", "queue.put", "name=n", "more=m", cwd=tmp_path).code == 0
        refused = run("call", "queue.put", "name=n", "id=5", cwd=tmp_path)
        assert len(api.seen) == 1
    assert refused.code != 0
    assert 'property name "id" is not allowed' in refused.err
