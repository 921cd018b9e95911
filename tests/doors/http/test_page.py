"""The pages at `/`, `/docs` and `/approvals`: what they show, to whom, and what they may do."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_client import Exchange, run, serving

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

TOOLS = '''
from portbook import Toolset

toolset = Toolset("offers")

@toolset.tool(effect="read")
def look() -> str:
    """{{known}} <script>alert(1)</script>"""
    return ""

@toolset.resource("notes://{name}")
def note(name: str) -> str:
    """A note, <b>by</b> its name."""
    return name

@toolset.prompt
def greet(name: str) -> str:
    """A greeting."""
    return name
'''


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    path = tmp_path / "offers.py"
    path.write_text(TOOLS)
    return path


def own_parts(page: str) -> dict[str, list[str]]:
    return {
        "script-src": re.findall(r"<script>(.*?)</script>", page, re.DOTALL),
        "style-src": re.findall(r"<style>(.*?)</style>", page, re.DOTALL),
    }


def require_strict(answer: Exchange) -> str:
    """Check what a page may do: what is in it, and nothing from elsewhere. Return the page."""
    page = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    rules = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert (
        rules["default-src"]
        == rules["base-uri"]
        == rules["form-action"]
        == rules["frame-ancestors"]
        == "'none'"
    )
    for rule, parts in own_parts(page).items():
        digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
        assert rules.get(rule, "") == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert not re.search(r"""(?:src|href)=["']?(?:[a-z]+:)?//""", page)
    assert not re.search(r"""<[^>]+ (?:on\w+|style)=""", page)
    return page


@pytest.mark.parametrize("path", ["/", "/docs", "/approvals"])
def test_a_page_runs_its_own_script_and_loads_nothing(tmp_path: Path, tools: Path, path: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            require_strict(await client.send(None, "GET", path, accept=BROWSER))

    run(main())


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


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        (BROWSER, True),
        ("text/html", True),
        ("TEXT/HTML;q=0.5", True),
        ("text/html, application/json", True),
        ("text/html;q=0.5, application/json", False),
        ("text/html;q=0", False),
        ("application/json", False),
        ("*/*", False),
        ("text/*", False),
        ("-", False),
    ],
)
def test_approvals_are_a_page_for_browsers_and_data_for_programs(
    tmp_path: Path, accept: str, is_page: bool
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            answer = await client.send(None, "GET", "/approvals", accept=accept)
            assert answer.headers["vary"] == "Accept"
            if is_page:
                page = require_strict(answer)
                assert "PORTBOOK_OPERATOR_KEY" in page
                assert client.sink.records == []
            else:
                assert (answer.status, answer.headers["content-type"]) == (401, "application/json")
                error: Any = answer.json["error"]
                assert "PORTBOOK_OPERATOR_KEY" in error["message"]
                assert "PORTBOOK_KEY" not in error["message"]
                assert error["details"] == {"reason": "UNAUTHORIZED"}

    run(main())


def test_the_page_of_approvals_keeps_the_key_to_itself(tmp_path: Path) -> None:
    """No form that could be sent, nothing that is stored, and the key in a header alone."""

    async def main() -> None:
        async with serving(tmp_path) as client:
            page = require_strict(await client.send(None, "GET", "/approvals", accept=BROWSER))
            for never in ("<form", "cookie", "localStorage", "sessionStorage", "innerHTML", "history."):
                assert never not in page
            assert 'type="password"' in page
            assert 'credentials:"omit"' in page

    run(main())
