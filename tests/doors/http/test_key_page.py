"""Where a key is missing: words for people, JSON for programs, and the same status for both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_client import run, serving
from support.strict_pages import BROWSER

LOCKED: dict[str, Any] = {"keys.required": True}


@pytest.mark.parametrize(
    ("path", "up"),
    [("/tools", "./"), ("/tools/echo", "../"), ("/operator/calls", "../"), ("/openapi.json", "./")],
)
def test_a_browser_reads_where_to_give_the_key(tmp_path: Path, path: str, up: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, **LOCKED) as client:
            people = await client.send(None, "GET", path, accept=BROWSER)
            program = await client.send(None, "GET", path, accept="application/json")
            assert people.status == program.status == 401
            assert people.headers["www-authenticate"] == program.headers["www-authenticate"] == "Bearer"
            assert people.headers["content-type"] == "text/html; charset=utf-8"
            assert "frame-ancestors 'none'" in people.headers["content-security-policy"]
            assert f'<a href="{up}docs">' in people.body.decode()
            assert program.headers["content-type"] == "application/json"

    run(main())


def test_what_needs_no_key_is_the_same_for_both(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            people = await client.send(None, "GET", "/tools?brief=1", accept=BROWSER)
            program = await client.send(None, "GET", "/tools?brief=1", accept="application/json")
            assert (people.status, people.body) == (program.status, program.body)

    run(main())
