"""A home folder with the files of every known client, each with the same server in the client's own shape."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast

from portbook.adopt.json_toml_yaml_edits import parse_json
from portbook.apis.openapi.yaml_reader import parse_yaml
from portbook.exports.client_table import CLIENTS, KnownClient, client_files
from support.pinned_folder import LIST, SEND
from support.portbook_process import TESTS, Finished, environment, run

TOKEN: Final = "value-of-a-variable"

_JSON: Final = """\
{
  // servers of this client
  "theme": "dark",  "unknown": {"a": [1, 2.50, null]},
  KEY: {
    "files": ENTRY, // the server
    /* another one */
    "off": {"command": "nothing", "args": [], "disabled": true, "enabled": false}
  },
  "last": "é \\u00e9"
}
"""
_TOML: Final = """\
# settings of this client
model = "a"   # odd  spacing

# the server
[mcp_servers.files]
command = COMMAND
args = ARGS
[mcp_servers.files.env]
FILES_TOKEN = "value-of-a-variable"

# another one
[mcp_servers.off]
command = "nothing"
enabled = false

[profiles."x.y"]
a = \'\'\'
[mcp_servers.files]
\'\'\'
"""
_GOOSE: Final = """\
# settings of this client
GOOSE_MODEL: a   # odd  spacing
extensions:
  # the server
  files:
    type: stdio
    cmd: COMMAND
    args: ARGS
    envs: {FILES_TOKEN: value-of-a-variable}
    enabled: true
    timeout: 300

  # another one
  'off':
    type: stdio
    cmd: nothing
    enabled: false
other: [1, 2]
"""
_CONTINUE: Final = """\
name: mine
mcpServers:
- name: files   # the server
  command: COMMAND
  args: ARGS
  env:
    FILES_TOKEN: value-of-a-variable
# another one
- name: "off"
  command: nothing
  enabled: false
rules:
  - be kind
"""


class ClientHome:
    """The folder."""

    def __init__(self, path: Path, *clients: str) -> None:
        """Write the files of some clients, or of all; their server offers two tools."""
        self.path = path
        self.server = path / "server"
        self.server.mkdir(parents=True)
        self.offer(SEND, LIST)
        self.command = [sys.executable, str(TESTS / "support" / "changing_server.py"), str(self.server)]
        self.clients = [each for each in CLIENTS if not clients or each.name in clients]
        for client in self.clients:
            file = self.file(client)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.text(client).encode())

    def offer(self, *tools: dict[str, Any]) -> None:
        """Set what the server offers."""
        (self.server / "definitions.json").write_text(json.dumps({"tools": tools}))

    def file(self, client: KnownClient) -> Path:
        """Return the file of a client."""
        return next(client_files(client, self.path, is_mac=False))

    def files(self) -> Iterator[Path]:
        """Yield the files of all clients."""
        return map(self.file, self.clients)

    def text(self, client: KnownClient) -> str:
        """Return the configuration of a client."""
        command, args = json.dumps(self.command[0]), json.dumps(self.command[1:])
        if client.form == "json":
            entry = json.dumps(self.entry(client), indent=2).replace("\n", "\n    ")
            return _JSON.replace("KEY", json.dumps(client.path[0])).replace("ENTRY", entry)
        text = {"codex": _TOML, "goose": _GOOSE, "continue": _CONTINUE}[client.name]
        return text.replace("COMMAND", command).replace("ARGS", args)

    def entry(self, client: KnownClient) -> dict[str, Any]:
        """Return the entry of the server, in the shape of a client."""
        style = client.style
        env = {style.env: {"FILES_TOKEN": TOKEN}}
        if style.args is None:
            return {"type": "local", style.command: self.command, **env}
        return {style.command: self.command[0], style.args: self.command[1:], **env}

    def adopt(self, *options: str) -> Finished:
        """Run the command as the owner of this home."""
        env = {**environment(), "HOME": str(self.path)}
        return run("adopt", *options, cwd=self.path, env=env)

    def contents(self) -> dict[str, bytes]:
        """Return every file below the home but the server's own and what serving writes."""
        found = (each for each in self.path.rglob("*") if each.is_file() and self.server not in each.parents)
        return {str(each.relative_to(self.path)): each.read_bytes() for each in found}


def read_as_client(client: KnownClient, file: Path) -> dict[str, Any]:
    """Return the servers of a client as it reads them itself."""
    data = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
    whole: Any
    if client.form == "toml":
        whole = tomllib.loads(data.decode().replace("\r\n", "\n"))
    else:
        whole = parse_yaml(data) if client.form == "yaml" else parse_json(data.decode())
    servers: Any = whole[client.path[0]]
    if client.name == "continue":
        return {each["name"]: each for each in cast("list[dict[str, Any]]", servers)}
    return servers
