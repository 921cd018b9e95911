"""What an MCP server is given as a secret is in no answer, no output and no file, whatever it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest

from support.mcp_peer import peer_of, table
from support.portbook_process import environment, http_server, run
from support.running_processes import wait_until

TOKEN = "sekret-token-value-123"

LAST_WORDS = """
import os, sys
sys.stderr.write("died with " + os.environ["TOKEN"] + "\\n")
sys.exit(1)
"""

TELLS_ALL = """
import json, os, sys

REPLIES = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "leaky", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "tell", "inputSchema": {"type": "object"}}]},
}
for line in sys.stdin:
    asked = json.loads(line)
    answer = {"error": {"code": -32601, "message": "unknown"}}
    if asked["method"] == "tools/call":
        told = [os.environ[name] for name in sorted(os.environ) if name.startswith("SECRET_")]
        answer = {"result": {"content": [{"type": "text", "text": " ".join(told)}]}}
    elif asked["method"] in REPLIES:
        answer = {"result": REPLIES[asked["method"]]}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


def command_of(folder: Path, program: str) -> str:
    (folder / "server.py").write_text(program)
    return f"command = {json.dumps([sys.executable, str(folder / 'server.py')])}"


@pytest.mark.covers("design.servers.last-words")
def test_the_last_words_of_a_server_do_not_tell_its_secret(tmp_path: Path) -> None:
    secret = 'env = { TOKEN = { env = "TOKEN" } }'
    settings = table("leaky", command_of(tmp_path, LAST_WORDS), secret, 'start = "eager"')
    (tmp_path / "portbook.toml").write_text(settings)
    env = environment(TOKEN=TOKEN)
    pinned = run("pin", "--json", cwd=tmp_path, env=env)
    assert b"died with [redacted]" in pinned.out
    with http_server(cwd=tmp_path, tools=(), env=env) as server:
        deep = f"{server.url}/health?deep=1"
        wait_until(lambda: b"died with" in urlopen(deep).read())
        health = urlopen(deep).read()
        seen = run("upstreams", "--json", cwd=tmp_path, env=env)
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for text in (pinned.out, pinned.err.encode(), health, seen.out, seen.err.encode(), written):
        assert TOKEN.encode() not in text
    assert b"died with [redacted]" in health


def test_every_one_of_many_secrets_is_redacted(tmp_path: Path) -> None:
    secrets = {f"SECRET_{number}": f"sekret-value-number-{number:03}" for number in range(100)}
    named = ", ".join(f'{name} = {{ env = "{name}" }}' for name in secrets)
    settings = table("leaky", command_of(tmp_path, TELLS_ALL), f"env = {{ {named} }}")
    with peer_of(tmp_path, settings, env=environment(**secrets)) as peer:
        assert peer.text("leaky__tell").split() == ["[redacted]"] * 100
