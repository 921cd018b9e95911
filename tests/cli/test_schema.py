"""`portbook schema`, and what an override does to a server that starts."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from portbook.schema import official_schemas
from portbook.schema.official_schema_digests import PINS
from portbook.schema.official_schemas import NEWEST, REVISIONS
from support import forked_process
from support.portbook_process import PORTBOOK, environment, over_stdio, run

OFFICIAL = Path(official_schemas.__file__).parent / "official"


@pytest.fixture
def override(tmp_path: Path) -> Path:
    """The newest schema, with a definition more."""
    document = json.loads((OFFICIAL / f"{NEWEST}.json").read_bytes())
    document["$defs"]["Extra"] = {"type": "integer"}
    path = tmp_path / "override.json"
    path.write_text(json.dumps(document))
    return path


def on_a_terminal(*arguments: str, cwd: Path) -> str:
    controller, terminal = os.openpty()
    forked_process.run([*PORTBOOK, *arguments], stdout=terminal, cwd=cwd, env=environment(), check=False)
    os.close(terminal)
    shown = os.read(controller, 65536).decode().replace("\r\n", "\n")
    os.close(controller)
    return shown


# -- check


def test_a_good_override_is_accepted(override: Path, tmp_path: Path) -> None:
    digest = hashlib.sha256(override.read_bytes()).hexdigest()
    finished = run("schema", "check", "override.json", "--sha256", digest, cwd=tmp_path)
    assert finished.code == 0
    assert json.loads(finished.out) == {
        "accepted": True,
        "revision": NEWEST,
        "origin": "override.json",
        "sha256": digest,
        "definitions": 156,
    }
    shown = on_a_terminal("schema", "check", override.as_uri(), cwd=tmp_path)
    assert (
        shown == f"accepted: {override.as_uri()} for revision {NEWEST}\ndefinitions: 156\nsha256: {digest}\n"
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_each_official_schema_is_accepted_for_its_own_revision(revision: str, tmp_path: Path) -> None:
    path = OFFICIAL / f"{revision}.json"
    assert run("schema", "check", str(path), "--revision", revision, cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        pytest.param("{", (), "it is not JSON: the text is incomplete (line 1, column 1)", id="not JSON"),
        pytest.param("{}", ("--sha256", "0" * 64), "its sha256 is ", id="another digest"),
        pytest.param(None, (), "cannot be read: No such file or directory", id="missing"),
    ],
)
def test_a_bad_one_is_refused_with_the_reason(
    content: str | None, options: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / "bad.json").write_text(content)
    finished = run("schema", "check", "bad.json", *options, cwd=tmp_path)
    assert finished.code == 1
    verdict = json.loads(finished.out)
    assert verdict["accepted"] is False
    assert verdict["reason"].startswith(reason)
    shown = on_a_terminal("schema", "check", "bad.json", *options, cwd=tmp_path)
    assert shown.startswith(f"refused: bad.json: {reason}")


# -- show


FILLED_IN = "ElicitResult/properties/content/additionalProperties"
OVERLAID = {
    "2025-06-18": [f"/definitions/{FILLED_IN}/type"],
    "2025-11-25": [f"/$defs/{FILLED_IN}/anyOf/1/type"],
    "2026-07-28": [f"/$defs/{FILLED_IN}/anyOf/1/type", "/$defs/JSONValue/anyOf/2/type"],
}


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_is_in_force_is_shown_for_each_revision(revision: str, tmp_path: Path) -> None:
    finished = run("schema", "show", revision, cwd=tmp_path)
    shown = json.loads(finished.out)
    assert (shown["revision"], shown["origin"]) == (revision, "embedded")
    assert shown["sha256"] == PINS[revision].sha256
    assert shown["definitions"] >= 79
    assert shown["overlays"] == OVERLAID.get(revision, [])
    [row] = [row for row in shown["methods"] if row["method"] == "tools/call"]
    assert row == {
        "method": "tools/call",
        "sender": "client",
        "request": "CallToolRequest",
        "result": "CallToolResult",
    }
    assert ("initialize" in {row["method"] for row in shown["methods"]}) == (revision != NEWEST)


def test_people_see_a_table(tmp_path: Path) -> None:
    shown = on_a_terminal("schema", "show", NEWEST, cwd=tmp_path)
    assert "\norigin: embedded\n" in shown
    assert "client  CallToolRequest -> CallToolResult\n" in shown
    assert shown.endswith("server  SubscriptionsAcknowledgedNotification\n")


@pytest.mark.parametrize(
    ("name", "definitions"),
    [
        ("tools/call", ["CallToolRequest", "CallToolResult"]),
        ("notifications/cancelled", ["CancelledNotification"]),
        ("Tool", ["Tool"]),
    ],
)
def test_a_method_or_definition_is_shown_as_schemas_that_stand_alone(
    name: str, definitions: list[str], tmp_path: Path
) -> None:
    shown = json.loads(run("schema", "show", "2025-06-18", name, cwd=tmp_path).out)
    assert list(shown["schemas"]) == definitions
    for definition, schema in shown["schemas"].items():
        assert schema["$ref"] == f"#/definitions/{definition}"
        assert definition in schema["definitions"]
    words = on_a_terminal("schema", "show", "2025-06-18", name, cwd=tmp_path)
    assert words.startswith(f'origin: embedded\n{{\n  "{definitions[0]}": ')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("show", "2025-06-19"), "there is no revision '2025-06-19' of MCP; did you mean 2025-06-18?"),
        (("show", "x"), "there is no revision 'x' of MCP; use 2024-11-05, "),
        (
            ("show", "2025-06-18", "tool/call"),
            "has no method or definition 'tool/call'; did you mean tools/call?",
        ),
        (("show", "2025-06-18", "calltoolrequest"), "did you mean CallToolRequest?"),
        (("show", NEWEST, "initialize"), "has no method or definition 'initialize'"),
        (("check", "x", "--revision", "2025-06-19"), "did you mean 2025-06-18?"),
    ],
)
def test_an_unknown_name_gets_a_suggestion(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    finished = run("schema", *arguments, cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert said in finished.err


def test_an_override_of_the_settings_is_what_is_shown(override: Path, tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('schema_override_uri = "override.json"\n')
    shown = json.loads(run("schema", "show", NEWEST, cwd=tmp_path).out)
    assert (shown["origin"], shown["definitions"], shown["overlays"]) == (str(override), 156, [])
    assert json.loads(run("schema", "show", "2025-11-25", cwd=tmp_path).out)["origin"] == "embedded"
    schemas = json.loads(run("schema", "show", NEWEST, "Extra", cwd=tmp_path).out)["schemas"]
    assert schemas["Extra"]["$defs"] == {"Extra": {"type": "integer"}}


# -- serve


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def serve(cwd: Path, *options: str, **variables: str) -> tuple[Any, str]:
    finished = run(
        "serve", "--stdio", *options,
        stdin=json.dumps(INITIALIZE).encode() + b"\n", cwd=cwd, env=environment(**variables),
    )  # fmt: skip
    [answer] = finished.answers
    return answer, finished.err


def test_a_server_checks_messages_against_the_override(tmp_path: Path) -> None:
    document = json.loads((OFFICIAL / "2025-06-18.json").read_bytes())
    document["definitions"]["Implementation"]["properties"]["version"] = {"const": "2"}
    (tmp_path / "strict.json").write_text(json.dumps(document))
    answer, said = serve(tmp_path)
    assert "result" in answer
    assert "override" not in said
    answer, said = serve(
        tmp_path, "--schema-override", "strict.json", PORTBOOK_SCHEMA_OVERRIDE_REVISION="2025-06-18"
    )
    assert answer["error"]["code"] == -32602
    assert "warning" not in said


@pytest.mark.covers("001.schema.override")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("missing.json", "missing.json: cannot be read: No such file or directory"),
        ("bad.json", "bad.json: it is not JSON: the text is incomplete (line 1, column 1)"),
        (
            "http://user:s3cret@127.0.0.1:9/a?token=s3cret",
            "http://127.0.0.1:9/a: cannot be reached: Connection refused",
        ),
    ],
)
def test_an_override_that_fails_is_warned_of_and_the_embedded_schema_used(
    uri: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.json").write_text("{")
    answer, said = serve(tmp_path, "--schema-override", uri)
    assert "result" in answer
    ignored = "the schema override is ignored and the embedded schemas are used"
    warning = f"portbook: warning: --schema-override: {ignored}: {reason}\n"
    assert said.startswith(warning) or f"\n{warning}" in said
    assert "s3cret" not in said


def test_the_digest_of_an_override_is_honoured(override: Path, tmp_path: Path) -> None:
    variables = {"PORTBOOK_SCHEMA_OVERRIDE_URI": str(override), "PORTBOOK_SCHEMA_OVERRIDE_SHA256": "0" * 64}
    answer, said = serve(tmp_path, **variables)
    assert "result" in answer
    assert f"the embedded schemas are used: {override}: its sha256 is " in said


def test_calls_of_another_dialect_are_served_with_an_override_too(override: Path, tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text('schema_override_uri = "override.json"\n')
    finished = over_stdio(b'{"jsonrpc":"2.0","id":1,"method":"mcp.tool.invoke","params":{}}', cwd=tmp_path)
    assert finished.answers[0]["error"]["code"] == -32602
