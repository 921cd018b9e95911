"""`GET /docs`: a page without data, which anybody may load, and which loads nothing from elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.mcp_http_client import run, serving
from support.strict_pages import BROWSER, require_strict


@pytest.mark.covers("002.docs.page")
def test_the_page_loads_nothing_from_elsewhere(tmp_path: Path, tools: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            page = require_strict(await client.send(None, "GET", "/docs", accept=BROWSER))
            linked = re.findall(r"""(?:src|href|action)\s*=\s*["']?([^"'\s>]*)""", page)
            assert set(linked) == {"./", "openapi.json"}
            for never in ("<form", "cookie", "Storage", "innerHTML", "url(", "@import", "{{"):
                assert never not in page

    run(main())


@pytest.mark.parametrize("key", ["-", "Bearer wrong"])
def test_the_page_is_no_secret_and_is_never_json(tmp_path: Path, tools: Path, key: str) -> None:
    """The tools are: they are read from `/openapi.json` with a key."""

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            answer = await client.send(None, "GET", "/docs", accept=BROWSER, authorization=key)
            page = require_strict(answer)
            assert "look" not in re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)
            assert client.sink.records == []

    run(main())
