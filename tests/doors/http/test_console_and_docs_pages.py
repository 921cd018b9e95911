"""The console at `/`: what its page may do, and its files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import portbook
from support.mcp_http_client import Exchange, run, serving
from support.strict_pages import BROWSER

CONSOLE = Path(portbook.__file__).parent / "doors" / "http" / "pages" / "console"
TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Ways to make markup of text, to keep a key, or to send something without one.
NEVER = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"),
    *("cookie", "localStorage", "sessionStorage", "indexedDB", "https://"),
    *("new EventSource", "XMLHttpRequest", "sendBeacon"),
)
IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([\w.]+)";', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function\*?|class|const) (\w+)", re.MULTILINE)
SCRIPTS = sorted(CONSOLE.glob("*.js"))


def policy_of(answer: Exchange) -> dict[str, str]:
    rules = answer.headers["content-security-policy"].split("; ")
    return {name: value for name, _, value in (rule.partition(" ") for rule in rules)}


def test_nothing_runs_but_what_has_the_nonce_of_the_reply(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            answers = [await client.send(None, "GET", "/", accept=BROWSER) for _ in range(2)]
            nonces: set[str] = set()
            for answer in answers:
                assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
                assert answer.headers["cache-control"] == "no-store"
                page, rules = answer.body.decode(), policy_of(answer)
                (nonce,) = set(re.findall(r'nonce="([^"]+)"', page))
                assert rules["script-src"] == rules["style-src"] == f"'nonce-{nonce}'"
                for closed in ("default-src", "base-uri", "form-action", "frame-ancestors", "trusted-types"):
                    assert rules[closed] == "'none'"
                assert not re.search(r"<script(?![^>]* src=)|<style|<form|<[^>]+ (?:on\w+|style)=", page)
                assert not re.search(r"""(?:src|href)=["']?(?:[a-z]+:)?//""", page)
                assert "{{" not in page
                nonces.add(nonce)
            assert len(nonces) == 2

    run(main())


def test_the_page_and_its_files_are_closed_to_other_sites(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            page = await client.send(None, "GET", "/", accept=BROWSER)
            script = re.search(r'src="([^"]+main\.js)"', page.body.decode())
            assert script is not None
            for answer in (page, await client.send(None, "GET", f"/{script[1]}")):
                assert answer.status == 200
                assert answer.headers["cross-origin-opener-policy"] == "same-origin"
                assert answer.headers["cross-origin-resource-policy"] == "same-origin"
                assert answer.headers["referrer-policy"] == "no-referrer"
                assert answer.headers["x-content-type-options"] == "nosniff"

    run(main())


def test_files_may_be_kept_because_their_address_names_their_content(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            page = (await client.send(None, "GET", "/")).body.decode()
            named = re.findall(r'(?:src|href)="(console/[0-9a-f]{16})/([\w.]+?(\.\w+))"', page)
            (folder,) = {folder for folder, _, _ in named}
            for _, name, kind in named:
                answer = await client.send(None, "GET", f"/{folder}/{name}")
                assert answer.status == 200
                assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
                assert answer.headers["content-type"] == TYPES[kind]
            for missing in (f"/{folder}/console.html", f"/{folder}/..%2fpage.py", "/console/0000/main.js"):
                assert (await client.send(None, "GET", missing)).status == 404

    run(main())


def test_the_page_knows_which_keys_exist_and_nothing_else(tmp_path: Path, tools: Path) -> None:
    async def main() -> None:
        options: dict[str, Any] = {"keys.required": True}
        async with serving(tmp_path, tools, **options) as client:
            page = (await client.send(None, "GET", "/")).body.decode()
            assert 'data-calls-need-key="yes"' in page
            for name in ("look", "notes://", "greet"):
                assert name not in page

    run(main())


def test_scripts_make_no_markup_of_text_and_keep_nothing() -> None:
    found = [(path.name, word) for path in SCRIPTS for word in NEVER if word in path.read_text("utf-8")]
    assert found == []


def test_every_name_that_a_script_imports_exists_and_every_script_is_imported() -> None:
    exported = {path.name: set(EXPORT.findall(path.read_text("utf-8"))) for path in SCRIPTS}
    imported = {"main.js"}
    for path in SCRIPTS:
        text = path.read_text("utf-8")
        for listed, module in IMPORT.findall(text):
            names = set(re.findall(r"\w+", listed))
            assert names <= exported[module], path.name
            assert [name for name in names if len(re.findall(rf"\b{name}\b", text)) < 2] == [], path.name
            imported.add(module)
    assert imported == {path.name for path in SCRIPTS}
