"""`portbook export`: what it writes is what registries and clients take, and it starts."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support import sdks
from support.portbook_process import ROOT, environment, run

TOOLS = """
from portbook import Toolset
from words import WORD

toolset = Toolset("greetings")

@toolset.tool(effect="read")
def greet(name: str) -> str:
    "Say hello."
    return f"{WORD}, {name}!"
"""
SETTINGS = """
[server]
name = "greetings"
version = "1.2.0"

[python]
toolsets = ["my_tools.py"]

[http.shop]
base_url = "https://shop.example"
bearer = { env = "SHOP_KEY" }

[http.shop.tools.stock]
description = "What is in stock."
method = "GET"
path = "/stock"
effect = "read"
"""
ENTRY = ("export", "server.json", "--name", "io.github.ada/greetings", "--description", "Says hello.")
CONVERSATION = b"""\
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},\
"clientInfo":{"name":"me","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"greet","arguments":{"name":"Ada"}}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "made"
    made.mkdir()
    (made / "my_tools.py").write_text(TOOLS)
    (made / "words.py").write_text('WORD = "Hello"\n')
    return made


def or_skip(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)


def greeting_of(command: list[str], cwd: Path, **more: str) -> str:
    """Start a server as a client does, in a folder of its own, and return what it greets with."""
    done = subprocess.run(
        command, input=CONVERSATION, capture_output=True, cwd=cwd, env=environment(**more), timeout=120
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2, done.stderr.decode()
    return str(answers[1]["result"]["content"][0]["text"])


# -- client


@pytest.mark.covers("design.export.client")
def test_an_entry_starts_the_server_from_any_folder(folder: Path, tmp_path: Path) -> None:
    finished = run("export", "client", "claude-desktop", "my_tools.py", cwd=folder)
    entry = json.loads(finished.out)["mcpServers"]["my-tools"]
    assert "claude_desktop_config.json of Claude Desktop" in finished.err
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert greeting_of([entry["command"], *entry["args"]], elsewhere) == "Hello, Ada!"
    assert [*elsewhere.iterdir()] == []
    assert (folder / "runs").is_dir()


def test_the_clients_are_listed_and_a_misspelt_one_is_answered_with_the_nearest(folder: Path) -> None:
    listed = json.loads(run("export", "client", cwd=folder).out)["clients"]
    assert {"client": "zed", "title": "Zed", "file": "~/.config/zed/settings.json"} in listed
    finished = run("export", "client", "cursr", "--json", cwd=folder)
    [problem] = json.loads(finished.out)["error"]["problems"]
    assert (finished.code, "did you mean cursor?" in problem["message"]) == (2, True)


def test_what_serve_would_refuse_is_not_exported(folder: Path) -> None:
    finished = run("export", "client", "cursor", "missing.py", cwd=folder)
    assert (finished.code, finished.out) == (2, b"")
    finished = run("export", "client", "claude-desktop", "--url", "https://x.example/mcp", cwd=folder)
    assert (finished.code, "only starts commands" in finished.err) == (2, True)


@pytest.mark.parametrize(
    "url",
    ["garbage", "ftp://x.example", "https://", "https://[x", "http://a b", "https://me:pw@x.example/mcp"],
)
def test_an_address_that_no_client_could_connect_to_is_refused(url: str, tmp_path: Path) -> None:
    finished = run("export", "client", "cursor", "--url", url, cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert finished.err.startswith("portbook: error: --url: ")
    assert "http://127.0.0.1:8765/mcp" in finished.err


def test_a_key_is_for_an_address(tmp_path: Path) -> None:
    finished = run("export", "client", "cursor", "--key", cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert "--key goes with --url" in finished.err


def test_a_bundle_of_another_release_is_refused_and_its_version_is_the_default(folder: Path) -> None:
    made = ("--bundle", str(bundled(folder, "my_tools.py", "--version", "3.1.0")))
    published = (*made, "--bundle-url", "https://example.com/x.mcpb")
    assert json.loads(run(*ENTRY, *published, cwd=folder).out)["version"] == "3.1.0"
    finished = run(*ENTRY, *published, "--version", "3.2.0", cwd=folder)
    assert (finished.code, "it is of version '3.1.0'" in finished.err) == (2, True)


# -- server.json


def test_the_registrys_own_schema_and_rules_take_every_kind_of_entry(folder: Path, tmp_path: Path) -> None:
    linter = or_skip(sdks.registry_linter)
    (folder / "portbook.toml").write_text(SETTINGS)
    bundle = bundled(folder)
    kinds = {
        "pypi": ("--pypi", "greetings", "greetings.tools"),
        "bundle": ("--bundle", str(bundle), "--bundle-url", "https://example.com/x.mcpb"),
        "remote": ("--remote", "https://mcp.example.com/mcp", "--key"),
        "all": (
            *("--pypi", "greetings", "greetings.tools", "--remote", "https://mcp.example.com/mcp"),
            *("--repository", "https://github.com/ada/greetings"),
        ),
    }
    for kind, options in kinds.items():
        finished = run(*ENTRY, *options, cwd=folder)
        assert finished.code == 0, finished.err
        place = tmp_path / kind
        place.mkdir()
        (place / "server.json").write_bytes(finished.out)
        done = subprocess.run(
            [linter.with_name("skillsaw"), "lint", str(place)], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, "mcp-registry" in done.stdout) == (0, True), done.stdout
    broken = json.loads((tmp_path / "pypi" / "server.json").read_text()) | {"version": "latest"}
    (tmp_path / "pypi" / "server.json").write_text(json.dumps(broken))
    done = subprocess.run(
        [linter.with_name("skillsaw"), "lint", str(tmp_path / "pypi")], capture_output=True, timeout=60
    )
    assert done.returncode != 0, "the linter cannot fail"


@pytest.mark.covers("design.export.registry")
def test_an_entry_names_the_release_the_digest_and_the_secrets(folder: Path) -> None:
    (folder / "portbook.toml").write_text(SETTINGS)
    made = bundled(folder)
    options = ("--bundle", str(made), "--bundle-url", "https://example.com/x.mcpb", "--pypi", "greetings")
    finished = run(*ENTRY, *options, "greetings.tools", cwd=folder)
    entry = json.loads(finished.out)
    pypi, bundle = entry["packages"]
    assert (entry["version"], pypi["version"], bundle["version"]) == ("1.2.0",) * 3
    assert pypi["environmentVariables"] == [{"name": "SHOP_KEY", "isRequired": True, "isSecret": True}]
    assert bundle["fileSha256"] == hashlib.sha256(made.read_bytes()).hexdigest()
    assert "mcp-name: io.github.ada/greetings" in finished.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "say where the server comes from"),
        (("--bundle", "x.mcpb"), "--bundle and --bundle-url go together"),
        (("--remote", "http://127.0.0.1:8765/mcp"), "others can reach"),
        (("--remote", "https://[x"), "others can reach"),
        (
            ("--bundle", "words.mcpb", "--bundle-url", "https://x.example/x.mcpb"),
            "not a bundle: it is no zip",
        ),
        (("--bundle", "none.mcpb", "--bundle-url", "https://x.example/x.mcpb"), "none.mcpb: No such file"),
        (("--bundle", ".", "--bundle-url", "https://x.example/x.mcpb"), "is a directory"),
        (("--pypi", "x", "x.tools", "--key"), "--key goes with --remote"),
    ],
)
def test_an_entry_that_the_registry_would_refuse_is_not_printed(
    options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    (tmp_path / "words.mcpb").write_text("words")
    finished = run(*ENTRY, *options, cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert said in finished.err


# -- mcpb


def bundled(folder: Path, *options: str) -> Path:
    finished = run("export", "mcpb", "--author", "Ada", "--output", "made.mcpb", *options, cwd=folder)
    assert finished.code == 0, finished.err
    told = json.loads(finished.out)
    path = folder / "made.mcpb"
    assert told["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    return path


@pytest.mark.covers("design.export.bundle")
def test_a_bundle_holds_what_a_server_is_made_from_and_has_the_same_bytes_again(folder: Path) -> None:
    (folder / "portbook.toml").write_text(SETTINGS)
    (folder / "notes.txt").write_text("not part of it")
    path = bundled(folder)
    first = path.read_bytes()
    with zipfile.ZipFile(path) as packed:
        names = packed.namelist()
        manifest = json.loads(packed.read("manifest.json"))
    wanted = ["manifest.json", "pyproject.toml", "server/my_tools.py", "server/portbook.toml"]
    assert names == [*wanted, "server/words.py"]
    assert [manifest[key] for key in ("name", "version")] == ["greetings", "1.2.0"]
    assert [tool["name"] for tool in manifest["tools"]] == ["greet", "shop__stock"]
    for each in folder.glob("*.py"):
        os.utime(each, (1, 1))
    assert bundled(folder).read_bytes() == first


def test_the_official_tools_take_the_manifest_and_the_archive(folder: Path, tmp_path: Path) -> None:
    modules = or_skip(sdks.node_packages)
    (folder / "portbook.toml").write_text(SETTINGS)
    path = bundled(folder)
    tool = [modules.node.node, str(modules.path("@anthropic-ai/mcpb", "dist", "cli", "cli.js"))]
    out = tmp_path / "out"
    subprocess.run([*tool, "unpack", str(path), str(out)], check=True, capture_output=True, timeout=60)
    done = subprocess.run(
        [*tool, "validate", str(out / "manifest.json")], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, "validation passes" in done.stdout) == (0, True), done.stdout


def test_a_bundle_starts_with_uv_as_a_desktop_client_starts_it(folder: Path, tmp_path: Path) -> None:
    uv = or_skip(sdks.uv_program)
    build = "from hatchling.build import build_wheel; import sys; print(build_wheel(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", build, str(tmp_path)], cwd=ROOT, check=True, capture_output=True, timeout=100
    )
    [wheel] = tmp_path.glob("*.whl")
    path = bundled(folder, "--wheel", str(wheel), "my_tools.py")
    out, records = tmp_path / "installed", tmp_path / "records"
    records.mkdir()
    with zipfile.ZipFile(path) as packed:
        packed.extractall(out)
    config = json.loads((out / "manifest.json").read_text())["server"]["mcp_config"]

    def told(text: str) -> str:
        return text.replace("${__dirname}", str(out)).replace("${user_config.records}", str(records))

    command = [str(uv), *map(told, config["args"])]
    env = {name: told(value) for name, value in config["env"].items()}
    # The Python that runs the tests: uv would fetch one of its own.
    env |= {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    assert greeting_of(command, tmp_path, **env) == "Hello, Ada!"
    assert (records / "runs").is_dir()


def test_a_bundle_that_could_not_serve_alone_is_refused(folder: Path, tmp_path: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "word.txt").write_text("Hi")
    reads = (
        "from pathlib import Path\nWORD = Path(__file__).with_name('data').joinpath('word.txt').read_text()\n"
    )
    (folder / "words.py").write_text(reads)
    finished = run("export", "mcpb", "--author", "Ada", "my_tools.py", cwd=folder)
    assert (finished.code, "in the bundle alone: " in finished.err) == (2, True), finished.err
    assert "--include" in finished.err
    with zipfile.ZipFile(bundled(folder, "--include", "data", "my_tools.py")) as packed:
        assert "server/data/word.txt" in packed.namelist()
    (tmp_path / "outside.txt").write_text("x")
    finished = run(
        "export", "mcpb", "--author", "A", "--include", "../outside.txt", "my_tools.py", cwd=folder
    )
    assert (finished.code, "is outside of" in finished.err) == (2, True)


def test_a_file_with_a_secret_is_never_bundled(folder: Path) -> None:
    (folder / "shop.key").write_text("hunter2")
    (folder / "portbook.toml").write_text(SETTINGS.replace('env = "SHOP_KEY"', 'file = "shop.key"'))
    finished = run("export", "mcpb", "--author", "Ada", cwd=folder)
    assert (finished.code, "carries no file with a secret" in finished.err) == (2, True), finished.err
    assert not list(folder.glob("*.mcpb"))
