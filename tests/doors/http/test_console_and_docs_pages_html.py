"""The page at `/docs`, and `/approvals` for browsers and programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.mcp_http_client import run, serving
from support.strict_pages import BROWSER, require_strict


def test_a_page_runs_its_own_script_and_loads_nothing(tmp_path: Path, tools: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            require_strict(await client.send(None, "GET", "/docs", accept=BROWSER))

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
def test_approvals_lead_browsers_to_the_console_and_are_data_for_programs(
    tmp_path: Path, accept: str, is_page: bool
) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            answer = await client.send(None, "GET", "/approvals", accept=accept)
            assert answer.headers["vary"] == "Accept"
            if is_page:
                assert (answer.status, answer.headers["location"]) == (303, "./#/waiting")
                assert client.sink.records == []
            else:
                assert (answer.status, answer.headers["content-type"]) == (401, "application/json")
                error: Any = answer.json["error"]
                assert "PORTBOOK_OPERATOR_KEY" in error["message"]
                assert "PORTBOOK_KEY" not in error["message"]
                assert error["details"] == {"reason": "UNAUTHORIZED"}

    run(main())
