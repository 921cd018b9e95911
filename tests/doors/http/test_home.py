"""The page at `/`: what it lists, and what it keeps to itself."""

from __future__ import annotations

import json
import re
from pathlib import Path

from support.mcp_http_client import run, serving
from support.portbook_process import HttpServer
from support.strict_pages import BROWSER, require_strict


def test_the_page_lists_the_tools_and_loads_nothing_from_elsewhere(server: HttpServer) -> None:
    page = server.request("/")
    assert page.status == 200
    assert b"echo_in_thread" in page.body
    assert b"Say it again, from a worker thread." in page.body
    assert b"{{" not in page.body
    assert b"http://" not in page.body
    assert b"https://" not in page.body.replace(b"https://json-schema.org/draft/2020-12/schema", b"")
    assert "default-src 'none'" in page.headers["content-security-policy"]


def test_the_first_page_lists_tools_resources_and_prompts_and_says_where_clients_connect(
    tmp_path: Path, tools: Path
) -> None:
    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            page = require_strict(await client.send(None, "GET", "/", accept=BROWSER))
            for shown in (
                "<h2>Tools (1)</h2>",
                "<h2>Resources (1)</h2>",
                "<b>notes://{name}</b>",
                "A note, &lt;b&gt;by&lt;/b&gt; its name.",
                "<h2>Prompts (1)</h2>",
                "<b>greet</b>",
                "/mcp</code>",
                'href="/approvals"',
                # What a description says is text, even where it looks like a part of the page.
                "{{known}} &lt;script&gt;alert(1)&lt;/script&gt;",
            ):
                assert shown in page
            known = re.search(r'id="known">(.*?)</script>', page)
            assert known is not None
            assert [tool["name"] for tool in json.loads(known[1])] == ["look"]

    run(main())


def test_with_tools_alone_the_first_page_speaks_of_nothing_else(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            page = (await client.send(None, "GET", "/")).body.decode()
            assert "<h2>Tools (" in page
            assert "Resources" not in page
            assert "Prompts" not in page

    run(main())


def test_while_calls_need_a_key_the_first_page_lists_nothing(tmp_path: Path, tools: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, tools, **{"keys.required": True}) as client:
            page = require_strict(await client.send(None, "GET", "/"))
            for name in ("look", "notes://", "greet", "(1)"):
                assert name not in page

    run(main())
