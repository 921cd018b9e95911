"""`portbook fetch`: a document is fetched once, pinned, and never at start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.file_server import FileServer, file_server
from support.portbook_process import run
from support.pseudo_terminal import on_a_terminal
from support.shop_api import operation, shop

SHOP = json.dumps(shop(operation("one"), operation("two"))).encode()
YAML = b"openapi: 3.0.3\npaths:\n  /one:\n    get:\n      operationId: one\n      responses: {}\n"


@pytest.fixture
def server() -> Iterator[FileServer]:
    with file_server() as started:
        started.files["/api/shop.json"] = SHOP
        yield started


def settings(folder: Path, text: str) -> None:
    (folder / "portbook.toml").write_text(text)


def fetched(folder: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run("fetch", *arguments, cwd=folder)
    assert done.code == 0, done.err
    return json.loads(done.out)["fetched"]


def problem(folder: Path, *arguments: str) -> tuple[int, str]:
    done = run("fetch", *arguments, cwd=folder)
    assert done.out == b""
    return done.code, done.err


def names(folder: Path) -> list[str]:
    done = run("tools", cwd=folder)
    assert done.code == 0, done.err
    return [tool["name"] for tool in json.loads(done.out)["tools"]]


def test_a_document_is_fetched_by_the_name_of_its_api_and_then_served(
    tmp_path: Path, server: FileServer
) -> None:
    url = f"{server.url}/api/shop.json"
    settings(tmp_path, f'[http.shop]\nopenapi = "{url}"\n')
    before = run("serve", "--stdio", cwd=tmp_path)
    assert before.code == 2
    assert "portbook.toml:2:1: http.shop.openapi is an address, and nothing is fetched at start" in before.err
    assert "run `portbook fetch shop` once" in before.err
    assert server.asked == []
    [report] = fetched(tmp_path, "shop")
    digest = hashlib.sha256(SHOP).hexdigest()
    assert report == {
        "url": url,
        "file": "shop.json",
        "sha256": digest,
        "bytes": len(SHOP),
        "operations": 2,
        "changed": True,
        "gateway": "shop",
    }
    assert (tmp_path / "shop.json").read_bytes() == SHOP
    lock = json.loads((tmp_path / "portbook.lock").read_text())
    assert lock == {"openapi": {"shop.json": {"url": url, "sha256": digest, "for": ["shop"]}}}
    # No servers in the document: its calls go to the host that it was fetched from.
    assert names(tmp_path) == ["shop.one", "shop.two"]
    run("call", "shop.one", cwd=tmp_path)
    assert server.asked == ["/api/shop.json", "/one"]


def test_a_fetched_document_that_has_changed_is_refused(tmp_path: Path, server: FileServer) -> None:
    settings(tmp_path, f'[http.shop]\nopenapi = "{server.url}/api/shop.json"\n')
    fetched(tmp_path, "shop")
    (tmp_path / "shop.json").write_bytes(SHOP + b" ")
    for verb in (["serve", "--stdio"], ["tools"], ["call", "shop.one"]):
        done = run(*verb, cwd=tmp_path)
        assert done.code == 2
        assert ":2:1: http.shop.openapi cannot be imported: shop.json has changed since" in done.err
        assert "portbook.lock" in done.err
    [report] = fetched(tmp_path, "shop")
    assert report["changed"] is False
    assert names(tmp_path) == ["shop.one", "shop.two"]


def test_a_file_that_the_settings_name_is_held_to_its_digest_too(tmp_path: Path, server: FileServer) -> None:
    fetched(tmp_path, f"{server.url}/api/shop.json", "--into", "mine.json")
    settings(tmp_path, '[http.shop]\nopenapi = "mine.json"\n')
    assert names(tmp_path) == ["shop.one", "shop.two"]
    (tmp_path / "mine.json").write_bytes(SHOP + b" ")
    assert "mine.json has changed since it was fetched" in run("tools", cwd=tmp_path).err
    # By the name of the API, the same address is fetched again.
    assert [report["file"] for report in fetched(tmp_path, "shop")] == ["mine.json"]


def test_a_newer_document_replaces_the_old_one_and_its_digest(tmp_path: Path, server: FileServer) -> None:
    settings(tmp_path, f'[http.shop]\nopenapi = "{server.url}/api/shop.json"\n')
    fetched(tmp_path, "shop")
    server.files["/api/shop.json"] = json.dumps(shop(operation("three"))).encode()
    assert names(tmp_path) == ["shop.one", "shop.two"]
    [report] = fetched(tmp_path, "shop")
    assert report["changed"] is True
    assert names(tmp_path) == ["shop.three"]


def test_a_key_in_an_address_is_nowhere_but_in_the_settings(tmp_path: Path, server: FileServer) -> None:
    server.files["/api/shop.json?api_key=hunter2"] = SHOP
    url = f"{server.url}/api/shop.json?api_key=hunter2"
    done = run("fetch", url, cwd=tmp_path)
    assert done.code == 0
    settings(tmp_path, f'[http.shop]\nopenapi = "{url}"\n')
    assert names(tmp_path) == ["shop.one", "shop.two"]
    [report] = fetched(tmp_path, "shop")
    assert (report["url"], report["changed"]) == (f"{server.url}/api/shop.json", False)
    assert server.asked == ["/api/shop.json?api_key=hunter2"] * 2
    lock = (tmp_path / "portbook.lock").read_text()
    assert f'"{server.url}/api/shop.json"' in lock
    assert "hunter2" not in f"{lock}{done.out}{done.err}{report}"


def test_two_files_of_one_address_are_both_pinned(tmp_path: Path, server: FileServer) -> None:
    url = f"{server.url}/api/shop.json"
    assert [fetched(tmp_path, url, "--into", name)[0]["changed"] for name in ("a.json", "b.json")] == [
        True
    ] * 2
    for name in ("a.json", "b.json"):
        settings(tmp_path, f'[http.shop]\nopenapi = "{name}"\n')
        assert [report["file"] for report in fetched(tmp_path, "shop")] == [name]
        (tmp_path / name).write_bytes(SHOP + b" ")
        assert f"{name} has changed since it was fetched" in run("tools", cwd=tmp_path).err
    (tmp_path / "a.json").unlink()
    [report] = fetched(tmp_path, url, "--into", "a.json")
    assert report["changed"] is True


@pytest.mark.parametrize("copy", ["newer.json", "a/shop.json", "shop_2.json"])
def test_a_second_file_of_an_address_does_not_take_the_place_of_the_one_that_is_served(
    tmp_path: Path, server: FileServer, copy: str
) -> None:
    url = f"{server.url}/api/shop.json"
    settings(tmp_path, f'[http.shop]\nopenapi = "{url}"\n')
    (tmp_path / "a").mkdir()
    fetched(tmp_path, "shop")
    server.files["/api/shop.json"] = json.dumps(shop(operation("three"))).encode()
    fetched(tmp_path, url, "--into", copy)  # to look at before it is served
    assert names(tmp_path) == ["shop.one", "shop.two"]
    assert [report["file"] for report in fetched(tmp_path, "shop")] == ["shop.json"]
    assert names(tmp_path) == ["shop.three"]


def test_a_file_that_an_api_was_fetched_into_by_name_is_the_one_that_it_serves(
    tmp_path: Path, server: FileServer
) -> None:
    url = f"{server.url}/api/shop.json"
    settings(tmp_path, f'[http.shop]\nopenapi = "{url}"\n')
    fetched(tmp_path, "shop")
    server.files["/api/shop.json"] = json.dumps(shop(operation("three"))).encode()
    fetched(tmp_path, "shop", "--into", "z.json")
    assert names(tmp_path) == ["shop.three"]
    lock = json.loads((tmp_path / "portbook.lock").read_text())["openapi"]
    assert {file: entry.get("for") for file, entry in lock.items()} == {"shop.json": None, "z.json": ["shop"]}


def test_of_an_address_that_was_fetched_by_itself_the_file_of_its_name_is_served(
    tmp_path: Path, server: FileServer
) -> None:
    url = f"{server.url}/api/shop.json"
    settings(tmp_path, f'[http.store]\nopenapi = "{url}"\n')
    fetched(tmp_path, url)
    server.files["/api/shop.json"] = json.dumps(shop(operation("three"))).encode()
    fetched(tmp_path, url, "--into", "a.json")
    assert names(tmp_path) == ["store.one", "store.two"]


@pytest.mark.parametrize("name", ["portbook.toml", "portbook.lock"])
def test_no_document_takes_the_place_of_the_settings(tmp_path: Path, server: FileServer, name: str) -> None:
    settings(tmp_path, f'[http.shop]\nopenapi = "{server.url}/api/shop.json"\n')
    code, said = problem(tmp_path, "shop", "--into", name, "--force")
    assert code == 1
    assert f"{name} is a file of Portbook itself" in said
    assert server.asked == []


def test_yaml_is_written_as_yaml(tmp_path: Path, server: FileServer) -> None:
    server.files["/shop"] = YAML
    [report] = fetched(tmp_path, f"{server.url}/shop")
    assert report["file"] == "shop.yaml"
    assert problem(tmp_path, f"{server.url}/shop", "--into", "new.json") == (
        1,
        f"portbook: error: {server.url}/shop: it is YAML; name a file that ends in .yaml with --into\n",
    )


def test_several_documents_are_fetched_by_one_name(tmp_path: Path, server: FileServer) -> None:
    server.files["/more.json"] = json.dumps(shop(operation("more"))).encode()
    settings(tmp_path, f'[http.shop]\nopenapi = ["{server.url}/api/shop.json", "{server.url}/more.json"]\n')
    assert [report["file"] for report in fetched(tmp_path, "shop")] == ["shop.json", "shop_2.json"]
    assert names(tmp_path) == ["shop.more", "shop.one", "shop.two"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/nothing", "the answer has the status 404"),
        ("/elsewhere", "it redirects to a different host; name that address, if you trust it"),
        ("/html", "this is a web page, not an OpenAPI document; give the address of the document itself"),
        ("/page", "this is a web page, not an OpenAPI document"),
        ("/yaml", "not YAML"),
        ("/json", "must be OpenAPI"),
    ],
)
def test_what_is_no_document_is_not_written(
    tmp_path: Path, server: FileServer, path: str, words: str
) -> None:
    server.files |= {
        "/elsewhere": "https://b.example/shop.json",
        "/html": b"<!doctype html>\n<p>: [\n",
        "/page": b"\xef\xbb\xbf\n<!-- a --><!-- b -->\n<html lang=en>",
        "/yaml": b"a: [\n",
        "/json": b'{"hello": 1}',
    }
    code, said = problem(tmp_path, f"{server.url}{path}")
    assert code == 1
    assert words in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_a_different_origin_is_not_overwritten(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "shop.json").write_text("mine")
    code, said = problem(tmp_path, f"{server.url}/api/shop.json")
    assert code == 1
    assert "shop.json exists and was not fetched from there; name a different file with --into" in said
    assert (tmp_path / "shop.json").read_text() == "mine"
    fetched(tmp_path, f"{server.url}/api/shop.json", "--force")
    assert (tmp_path / "shop.json").read_bytes() == SHOP


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (
            "shpo",
            1,
            "there is no API 'shpo' in the settings, and it is no http or https address; did you",
        ),
        ("local", 2, "portbook.toml:4:1: http.local.openapi names no address to fetch"),
        ("http://user:word@127.0.0.1/x", 1, "no user name or password"),
        ("http://[bad", 1, "a host is an ASCII name or an IP address"),
    ],
)
def test_a_source_that_is_none_is_explained(tmp_path: Path, source: str, code: int, words: str) -> None:
    settings(tmp_path, '[http.shop]\nopenapi = "https://a.example/x"\n[http.local]\nopenapi = "x.json"\n')
    found, said = problem(tmp_path, source)
    assert found == code
    assert words in said
    assert "word@" not in said


def test_a_lock_that_cannot_be_read_stops_fetching_and_serving(tmp_path: Path, server: FileServer) -> None:
    (tmp_path / "portbook.lock").write_text('{\n"openapi": 7}')
    (tmp_path / "shop.json").write_bytes(SHOP)
    settings(tmp_path, '[http.shop]\nbase_url = "https://a.example"\nopenapi = "shop.json"\n')
    code, said = problem(tmp_path, "shop")
    assert code == 2
    assert "portbook.lock:2: /openapi: must be an object; restore the file" in said
    assert "portbook.lock:2: /openapi: must be an object; restore the file" in run("tools", cwd=tmp_path).err


def test_people_get_words_and_what_to_write_into_the_settings(tmp_path: Path, server: FileServer) -> None:
    shown, code = on_a_terminal(tmp_path, "fetch", f"{server.url}/api/shop.json")
    assert code == 0
    digest = hashlib.sha256(SHOP).hexdigest()
    assert f"fetched: shop.json ({len(SHOP):,} bytes, 2 operations)" in shown
    assert f"sha256: {digest}, pinned in portbook.lock" in shown
    assert 'openapi = "shop.json"' in shown
