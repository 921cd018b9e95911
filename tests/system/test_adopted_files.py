"""Files of every client, written oddly: adopting changes entries alone, and undoing gives every byte back."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, Final

import pytest

from portbook.adopt.json_toml_yaml_edits import parse_json
from portbook.exports.client_entry_and_variables import ConnectedServer, entry_for
from portbook.exports.client_table import KnownClient
from support.client_home import ClientHome, read_as_client
from support.portbook_process import http_server

Oddity = Callable[[KnownClient, bytes], bytes]


def of_form(**edits: Callable[[bytes], bytes]) -> Oddity:
    """Return an oddity that differs by form; a form without one stays as it is."""
    return lambda client, data: edits.get(client.form, bytes)(data)


def everywhere(edit: Callable[[bytes], bytes]) -> Oddity:
    return lambda client, data: edit(data)


def compact(data: bytes) -> bytes:
    return json.dumps(parse_json(data.decode()), separators=(",", ":"), ensure_ascii=False).encode()


def spread(data: bytes) -> bytes:
    return json.dumps(parse_json(data.decode()), indent=7).replace(": {", " :\n{").encode() + b"\n"


TABS: Final = of_form(
    json=lambda data: re.sub(rb"(?m)^(?:  )+", lambda found: b"\t" * (len(found[0]) // 2), data),
    toml=lambda data: re.sub(rb"(?m)^(\w+) = ", rb"\t\1\t=\t", data),
    yaml=lambda data: data.replace(b"   #", b"\t#"),
)
CRLF: Final = everywhere(lambda data: data.replace(b"\n", b"\r\n"))
MARK: Final = everywhere(lambda data: b"\xef\xbb\xbf" + data)
NO_NEWLINE: Final = everywhere(lambda data: data.rstrip(b"\n"))
UNKNOWN: Final = of_form(
    json=lambda data: data.replace(b"{", b'{ "x.unknown" : {"deep": [1e3, {"y": null}], "": "\\u0000"},', 1),
    toml=lambda data: b"x-unknown = { deep = [1_000, {y = 1979-05-27}] }\n" + data,
    yaml=lambda data: b"x-unknown: {deep: [0x10, {y: ~}]}\n" + data,
)
COMMENTS: Final = of_form(
    json=lambda data: data.replace(b"\n", b" // files: { \xc3\xa9\n", 3) + b"/* { */\n",
    toml=lambda data: data.replace(b"\n", b" # [mcp_servers.files]\n", 2) + b"# end",
    yaml=lambda data: b"# mcpServers:\n" + data + b"# - name: files\n",
)

ODDITIES: Final[dict[str, Oddity]] = {
    "as it is": everywhere(bytes),
    "comments": COMMENTS,
    "CRLF": CRLF,
    "byte order mark": MARK,
    "no final newline": NO_NEWLINE,
    "tabs": TABS,
    "unknown keys": UNKNOWN,
    "blank lines": everywhere(lambda data: b"\n\n" + data.replace(b"\n", b"\n\n") + b"\n\n"),
    "blanks at the ends of lines": everywhere(lambda data: data.replace(b"\n", b"  \n")),
    "one line": of_form(json=compact),
    "spread": of_form(json=spread),
    "trailing commas": of_form(json=lambda data: re.sub(rb"(?<=[\]}\"])\n(\s*)}", rb",\n\1}", data)),
    "all at once": lambda client, data: reduce(
        lambda done, each: each(client, done), (UNKNOWN, COMMENTS, TABS, CRLF, NO_NEWLINE, MARK), data
    ),
}


@pytest.mark.covers("adopt.undo")
@pytest.mark.parametrize("oddity", ODDITIES)
def test_undo_gives_every_file_back_byte_for_byte(tmp_path: Path, oddity: str) -> None:
    home = ClientHome(tmp_path)
    read: dict[str, tuple[Any, Any]] = {}
    for client in home.clients:
        file = home.file(client)
        file.write_bytes(ODDITIES[oddity](client, file.read_bytes()))
        read[client.name] = read_as_client(client, file), read_around(client, file)
    before = home.contents()
    done = home.adopt("--yes")
    assert done.code == 0, done.err
    for client in home.clients:
        servers = read_as_client(client, home.file(client))
        assert servers.keys() == {"portbook", "off"}, (client.name, done.err)
        assert servers["off"] == read[client.name][0]["off"], client.name
        assert read_around(client, home.file(client)) == read[client.name][1], client.name
    after = home.contents()
    again = home.adopt("--yes")
    assert (again.code, home.contents()) == (0, after), "a second run changes nothing"
    assert "there is nothing new to adopt" in again.err
    undone = home.adopt("--undo")
    assert (undone.code, home.contents()) == (0, before), undone.err


def read_around(client: KnownClient, file: Path) -> list[bytes]:
    """Return the lines of a file that are of no server, as they are."""
    lines = file.read_bytes().splitlines(keepends=True)
    words = re.compile(rb"theme|last|model|profiles|GOOSE_MODEL|other|rules|be kind|x.unknown|end")
    # On one line, all is beside the servers: the values are compared by the caller.
    return [line for line in lines if words.search(line)] if len(lines) > 1 else []


@pytest.mark.covers("adopt.links")
@pytest.mark.parametrize("kind", ["whole", "relative", "link to a link", "folder"])
def test_links_of_every_client_are_followed_and_stay(tmp_path: Path, kind: str) -> None:
    home = ClientHome(tmp_path)
    kept = tmp_path / "dotfiles"
    links: dict[Path, Path] = {}
    for client in home.clients:
        file = home.file(client)
        target = kept / client.name / file.name
        target.parent.mkdir(parents=True)
        if kind == "folder" and not any(
            each != file and file.parent in each.parents for each in home.files()
        ):
            target.parent.rmdir()
            file.parent.rename(target.parent)
            file.parent.symlink_to(target.parent, target_is_directory=True)
            links[file.parent] = target
            continue
        file.rename(target)
        target.chmod(0o640)
        place = target
        if kind == "relative":
            place = Path(*[".."] * (len(file.relative_to(tmp_path).parts) - 1), target.relative_to(tmp_path))
        elif kind == "link to a link":
            place = target.with_name("between")
            place.symlink_to(target.name)
        file.symlink_to(place)
        links[file] = target
    before, modes = home.contents(), {target: target.stat().st_mode for target in links.values()}
    done = home.adopt("--yes")
    assert done.code == 0, done.err
    for client in home.clients:
        assert read_as_client(client, home.file(client)).keys() == {"portbook", "off"}, client.name
    for link, target in links.items():
        assert link.is_symlink(), link
        assert b"portbook" in target.read_bytes(), target
    assert home.adopt("--undo").code == 0
    assert home.contents() == before
    assert all(link.is_symlink() for link in links)
    assert {target: target.stat().st_mode for target in links.values()} == modes


@pytest.mark.covers("adopt.read-only")
def test_read_only_files_of_every_client_are_left_with_the_reason(tmp_path: Path) -> None:
    home = ClientHome(tmp_path)
    for at, file in enumerate(home.files()):
        file.chmod(0o444 if at % 2 else 0o400)
    before = home.contents()
    done = home.adopt("--yes")
    assert (done.code, home.contents()) == (0, before)
    told = [line for line in done.out.decode().splitlines() if "left in place: its file is read-only" in line]
    assert len(told) == 2 * len(home.clients)
    assert "there is nothing to adopt" in done.err


@pytest.mark.covers("adopt.shapes")
def test_remote_servers_in_the_shape_of_every_client_are_adopted_and_given_back(tmp_path: Path) -> None:
    home = ClientHome(tmp_path / "home")
    (tmp_path / "far").mkdir()
    clients = [client for client in home.clients if client.style.urls]
    assert {client.name for client in home.clients} - {client.name for client in clients} == {
        "claude-desktop"
    }
    with http_server(cwd=tmp_path / "far") as server:
        far = ConnectedServer("far", f"{server.url}/mcp")
        for client in clients:
            home.file(client).write_text(entry_for(client, far).text)
        before = home.contents()
        done = home.adopt("--yes")
    assert done.code == 0, done.err
    for client in clients:
        servers = read_as_client(client, home.file(client))
        assert servers.keys() == {"portbook"}, (client.name, done.out.decode())
    settings = tomllib.loads((home.path / ".config/portbook/portbook.toml").read_text())
    assert settings["mcp"]["far"] == {"url": far.url}
    assert home.adopt("--undo").code == 0
    assert home.contents() == before


def test_files_of_projects_are_adopted_when_they_are_named(tmp_path: Path) -> None:
    home = ClientHome(tmp_path)
    project = tmp_path / "project"
    named: list[str] = []
    for client in home.clients:
        for name in client.project_files:
            file = project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(home.text(client))
            named += ["--file", str(file)]
    before = home.contents()
    assert len(named) == 2 * 4
    done = home.adopt("--yes", *named)
    assert done.code == 0, done.err
    changed = {name for name, data in home.contents().items() if name in before and before[name] != data}
    assert changed == {str(Path(name).relative_to(tmp_path)) for name in named[1::2]}
    assert home.adopt("--undo").code == 0
    assert home.contents() == before
