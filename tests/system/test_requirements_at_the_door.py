"""Requirements whose inner parts have tests of their own, driven here from where the user stands."""

from __future__ import annotations

import base64
import html
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jsonpatch
import pytest

from portbook.canonical import canonical_bytes
from support import forked_process
from support.portbook_process import ROOT, Finished, child, environment, http_server, run

PATIENCE_S = 60.0
MCP = (sys.executable, "-m", "portbook.cli.adapter")


def asset_results(folder: Path, *calls: tuple[str, dict[str, Any]], **variables: str) -> list[Any]:
    """The results of asset tools, as a client of `python -m mcp` gets them."""
    frames = [
        json.dumps({"jsonrpc": "2.0", "id": at, "method": method, "params": given}).encode() + b"\n"
        for at, (method, given) in enumerate(calls)
    ]
    done = forked_process.run(
        MCP,
        input=b"".join(frames),
        capture_output=True,
        cwd=folder,
        env=environment(MCP_READY_FILE=str(folder / "ready"), **variables),
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["result"] for line in done.stdout.splitlines()]


def library(folder: Path, **files: Any) -> Path:
    for name, document in files.items():
        path = folder / f"{name}.schema.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(document))
    return folder


# -- 002


SHOP = """
import base64, html, json, os
from typing import Any
from urllib.parse import quote

from portbook import Toolset

toolset = Toolset("shop")
SECRET = 'hunter2/"&+token'


@toolset.tool(effect="read")
def account() -> Any:
    return {"password": "x", "secret": 7, "token": [1], "api_key": {"a": 1}, "name": "ada"}


@toolset.tool(effect="read")
def forms() -> Any:
    raw = SECRET.encode()
    return {
        "plain": SECRET,
        "base64": base64.b64encode(raw).decode(),
        "inside": base64.b64encode(b"user:" + raw).decode(),
        "hex": raw.hex(),
        "query": quote(SECRET, safe=""),
        "page": html.escape(SECRET),
        "json": json.dumps({"k": SECRET}),
        "honest": "a berth for the night",
    }


@toolset.tool(effect="write")
def pay(cents: int) -> int:
    return cents
"""
SECRET = 'hunter2/"&+token'


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def settings(folder: Path, text: str = "") -> None:
    (folder / "portbook.toml").write_text('[python]\ntoolsets = ["shop.py"]\n' + text)


def called(folder: Path, tool: str, **variables: str) -> Any:
    finished = run("call", tool, "--json", cwd=folder, env=environment(**variables))
    assert finished.code == 0, finished.err
    return json.loads(finished.out)


@pytest.mark.covers("002.redaction.modes")
def test_a_caller_gets_what_the_mode_puts_in_the_place_of_a_secret(shop: Path) -> None:
    settings(shop)
    replaced = called(shop, "account")
    assert replaced == {
        "password": "[redacted]",
        "secret": 0,
        "token": [],
        "api_key": {},
        "name": "ada",
    }
    settings(shop, '[redaction]\nmode = "remove"\n')
    assert called(shop, "account") == {"name": "ada"}
    settings(shop, '[redaction]\nmode = "hash"\n')
    hashed = called(shop, "account")
    assert hashed == called(shop, "account"), "the same secret has the same hash"
    assert hashed["password"].startswith("[sha256:")
    assert [type(hashed[name]) for name in replaced] == [type(value) for value in replaced.values()]


@pytest.mark.covers("002.redaction.known")
def test_a_known_secret_reaches_no_caller_and_no_record_in_any_form(shop: Path) -> None:
    settings(shop, '[redaction]\nsecrets = ["SHOP_TOKEN"]\n[audit]\narguments = true\n')
    found = called(shop, "forms", SHOP_TOKEN=SECRET)
    assert found.pop("honest") == "a berth for the night"
    assert all("[redacted]" in text for text in found.values())
    raw = SECRET.encode()
    forms = [
        *(SECRET, raw.hex(), quote(SECRET, safe=""), html.escape(SECRET), json.dumps(SECRET)[1:-1]),
        base64.b64encode(raw).decode()[:-4],
    ]
    kept = b"".join(path.read_bytes() for path in (shop / "runs").rglob("*.jsonl")).decode()
    for form in forms:
        assert form not in json.dumps(found)
        assert form not in "".join(found.values())
        assert form not in kept


def decided_while_waiting(folder: Path, verb: str) -> Any:
    """The answer to a call that waits, and that an operator decides in a process of their own."""
    answers: list[Any] = []
    with http_server(cwd=folder, tools=()) as server:
        body = {"session_id": "s", "tool_id": "pay", "args": {"cents": 5}, "wait_ms": 50_000}

        def ask() -> None:
            answers.append(
                server.request("/execute", json.dumps(body).encode(), content_type="application/json").json
            )

        caller = threading.Thread(target=ask)
        caller.start()
        deadline = time.monotonic() + PATIENCE_S
        waiting: list[Any] = []
        while not waiting:
            assert time.monotonic() < deadline, "no approval was asked for"
            waiting = json.loads(run("approvals", "list", "--json", "--state", "pending", cwd=folder).out)[
                "approvals"
            ]
        assert answers == [], "the call waits"
        assert run("approvals", verb, waiting[0]["approval_id"], cwd=folder).code == 0
        caller.join(PATIENCE_S)
    return answers[0]


@pytest.mark.covers("002.approval.wait")
def test_a_call_that_waits_goes_on_when_an_operator_decides_elsewhere(shop: Path) -> None:
    settings(shop, '[policy]\napproval = "writes"\n')
    assert decided_while_waiting(shop, "approve")["result"] == 5
    denied = decided_while_waiting(shop, "deny")
    assert (denied["status"], denied["error"]["details"]["reason"]) == ("failure", "APPROVAL_DENIED")


# -- 003


@pytest.mark.covers("003.failure.own-codes")
def test_the_codes_of_a_program_and_of_a_tool_stand_in_the_envelope(tmp_path: Path) -> None:
    program = "import sys; print(sys.argv[1], file=open(sys.argv[2], 'w')); sys.exit(3)"
    own = json.dumps({"errors": [{"code": "SHOP.CLOSED", "message": "Closed until nine."}]})
    for stream in ("/dev/stdout", "/dev/stderr"):
        wrapped = run("wrap", "--", sys.executable, "-c", program, own, stream, cwd=tmp_path)
        assert wrapped.answers[0]["errors"][0] == {"code": "SHOP.CLOSED", "message": "Closed until nine."}
    (tmp_path / "tools.py").write_text(
        "from portbook import ToolError, Toolset\ntoolset = Toolset('t')\n@toolset.tool(effect='read')\n"
        "def buy() -> int:\n    raise ToolError('Closed until nine.', code='SHOP.CLOSED')\n"
    )
    request = {
        "schema_version": "mcp.request.v0.1",
        "tool": {"name": "buy"},
        "params": {"_meta": {"capture_provenance": True}},
        "artifacts": [],
    }
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "mcp.request", "params": request}).encode()
    [answer] = run("serve", "--stdio", "tools.py", stdin=frame + b"\n", cwd=tmp_path).answers
    [entry] = answer["result"]["errors"]
    assert (entry["code"], entry["message"]) == ("SHOP.CLOSED", "Closed until nine.")


def checked(folder: Path, content: bytes) -> Finished:
    (folder / "envelope.json").write_bytes(content)
    return run("envelope", "check", "envelope.json", cwd=folder)


@pytest.mark.covers("003.forward")
def test_a_consumer_refuses_unknown_members_of_an_envelope_and_none_of_its_result(tmp_path: Path) -> None:
    envelope = run(
        "wrap", "--", "printf", '{"anything": {"provenance": 5}, "schema_version": "x"}', cwd=tmp_path
    )
    made = envelope.answers[0]
    assert made.keys() == {"schema_version", "result", "provenance"}
    assert checked(tmp_path, json.dumps(made).encode()).code == 0
    for changed in ({**made, "signature": "x"}, {**made, "schema_version": "mcp.envelope.v0.2"}):
        assert checked(tmp_path, json.dumps(changed).encode()).code != 0
    unknown = json.loads(checked(tmp_path, json.dumps({**made, "more": 1}).encode()).out)
    assert unknown["sound"] is False


@pytest.mark.covers("003.check.command")
def test_the_check_of_an_envelope_exits_with_0_1_or_2(tmp_path: Path) -> None:
    made = run("wrap", "--provenance", "full", "--", "printf", '{"ok": true}', cwd=tmp_path).out
    sound = checked(tmp_path, made)
    assert (sound.code, json.loads(sound.out)["sound"]) == (0, True)
    altered = checked(tmp_path, made.replace(b'"ok":true', b'"ok":null'))
    assert (altered.code, json.loads(altered.out)["sound"]) == (1, False)
    assert checked(tmp_path, b"{").code == 2
    assert checked(tmp_path, b'{"jsonrpc": "2.0"}').code in (1, 2)
    assert run("envelope", "check", "missing.json", cwd=tmp_path).code == 2


# -- 004


HONEST = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "version": "1.0",
    "title": "An account",
    "type": "object",
    "properties": {
        "password": {"type": "string", "default": "changeme", "examples": ["hunter2"]},
        "token": {"type": "object", "properties": {"secret": {"const": "s"}}},
        "ratio": {"const": 1.50},
        "card": {"type": "integer", "const": 4111111111111111},
    },
    "required": ["token", "password"],
}


@pytest.mark.covers("004.schemas.not-mutated")
def test_a_schema_is_given_as_it_stands_in_its_file_and_the_file_stays(tmp_path: Path) -> None:
    folder = library(tmp_path / "schemas", account=HONEST)
    before = (folder / "account.schema.json").read_bytes()
    asked = ("get_schema", {"name": "account"})
    checks = ("validate_asset", {"asset": {"password": "x", "token": {}}, "schema": "account"})
    first, checked_asset, again = asset_results(tmp_path, asked, checks, asked, SYN_SCHEMAS_DIR=str(folder))
    assert first == again == {"ok": True, "schema": HONEST, "version": "1.0"}
    assert list(first["schema"]) == list(HONEST)
    assert checked_asset["ok"]
    (tmp_path / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    result = run("call", "get_schema", "name=account", "--json", cwd=tmp_path)
    assert json.loads(result.out)["schema"] == HONEST
    assert (folder / "account.schema.json").read_bytes() == before


DOCUMENTS: list[Any] = [
    {},
    {"a": 1},
    {"a": {"b": [1, 2]}},
    {"a": {"b": [2, 1]}, "c": None},
    {"a/b": {"~": 1}, "": {"": 0}},
    {"a": 1.0, "b": True},
    {"a": True, "b": 1},
    {"password": "one", "token": {"secret": 1}},
    {"password": "two", "token": {"secret": [1]}},
    [1, {"a": 2}],
    "text",
    None,
]


@pytest.mark.covers("004.diff.valid")
def test_a_patch_that_a_client_gets_turns_its_base_into_the_other_document(tmp_path: Path) -> None:
    pairs = [(base, new) for base in DOCUMENTS for new in DOCUMENTS]
    calls = [("diff_assets", {"base": base, "new": new}) for base, new in pairs]
    for (base, new), result in zip(pairs, asset_results(tmp_path, *calls), strict=True):
        assert result["ok"], result
        patched = jsonpatch.apply_patch(base, result["patch"])
        assert canonical_bytes(patched) == canonical_bytes(new)
        assert {operation["op"] for operation in result["patch"]} <= {"add", "remove", "replace"}


@pytest.mark.covers("004.sources.order")
def test_folders_come_from_the_variables_then_from_the_submodule_then_from_nowhere(tmp_path: Path) -> None:
    calls = (("list_schemas", {}), ("list_examples", {}), ("get_schema", {"name": "sub"}))

    def names(**variables: str) -> tuple[list[str], list[str], bool]:
        schemas, examples, got = asset_results(tmp_path, *calls, **variables)
        listed = [each["component"] for each in examples["examples"]]
        return [each["name"] for each in schemas["schemas"]], listed, got["ok"]

    assert names() == ([], [], False)
    library(tmp_path / "libs/synesthetic-schemas/jsonschema", sub={"version": "1"})
    (tmp_path / "libs/synesthetic-schemas/examples").mkdir()
    (tmp_path / "libs/synesthetic-schemas/examples/sub.json").write_text("{}")
    assert names() == (["sub"], ["sub"], True)
    (tmp_path / "own").mkdir()
    library(tmp_path / "own", mine={"version": "1"})
    (tmp_path / "own/mine.json").write_text("{}")
    own = str(tmp_path / "own")
    assert names(SYN_SCHEMAS_DIR=own)[0::2] == (["mine"], False)
    assert names(SYN_SCHEMAS_DIR=own)[1] == ["sub"], "each variable is for one folder"
    assert names(SYN_SCHEMAS_DIR=str(tmp_path / "missing"))[0] == [], (
        "a wrong folder is not replaced in silence"
    )
    (tmp_path / "portbook.toml").write_text("")
    assert names() == (["sub"], ["sub"], True), "the same in a folder with settings"


@pytest.mark.covers("004.exit.install")
def test_pip_finds_everything_that_the_requirements_name_and_installs_the_name_mcp(tmp_path: Path) -> None:
    text = (ROOT / "requirements.txt").read_text()
    assert text.splitlines()[-1] == "-e ./alias"
    assert "://" not in text
    offline = ("--no-index", "--no-build-isolation", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip", "install", "-q", *offline)
    # Every pin is installed here, and none contradicts another: else pip would look for it and find nothing.
    satisfied = subprocess.run(
        [*pip, "--dry-run", "-r", "requirements.txt", "-e", "."], cwd=ROOT, capture_output=True, text=True
    )
    assert satisfied.returncode == 0, satisfied.stderr
    alias = subprocess.run(
        [*pip, "--no-deps", "--target", str(tmp_path), "./alias"], cwd=ROOT, capture_output=True, text=True
    )
    assert alias.returncode == 0, alias.stderr
    asked = "import mcp; print(mcp.__version__, mcp.__file__)"
    with child(
        [sys.executable, "-c", asked],
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(tmp_path)),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        said, _ = process.communicate(timeout=PATIENCE_S)
    assert str(tmp_path) in said


@pytest.mark.covers("004.exit.pytest")
def test_pytest_runs_tests_with_what_the_requirements_install() -> None:
    # It collects every test of this run already, in the same environment.
    assert "\npytest==" in (ROOT / "requirements.txt").read_text()
    pytest_q = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    ran = subprocess.run(
        [*pytest_q, "tests/assets/test_library.py", "tests/wire/test_lines_and_size_limit.py"],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout[-2000:]
