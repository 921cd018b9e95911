"""`/docs`: every route tried out in a real browser, with keys or without, and text is only text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from support.browser import visit
from support.console_world import ADA, OPERATOR, ConsoleServer
from support.page_checks import require_contrast, require_names, require_no_sideways_scroll


def load(page: Page, *, caller: str = "", operator: str = "") -> None:
    page.locator("#caller").fill(caller)
    page.locator("#operator").fill(operator)
    page.get_by_role("button", name="Load routes").click()


def opened(page: Page, name: str) -> Locator:
    row = page.locator(f"[id='{name}']")
    row.locator("summary").first.click()
    return row


def answer_of(row: Locator) -> Any:
    expect(row.get_by_role("status")).to_contain_text(" ms")
    return json.loads(row.get_by_label("Answer").inner_text())


@pytest.mark.covers("design.docs.tried-out")
def test_a_tool_is_called_from_its_example_by_the_keyboard(browser: Browser, server: ConsoleServer) -> None:
    with visit(browser, server.url) as visited:
        page = visited.open("docs")
        row = opened(page, "search")
        body = row.get_by_label("Body")
        sent = json.loads(body.input_value())
        assert sent["session_id"] == "docs"
        body.fill(json.dumps({**sent, "args": {**sent["args"], "limit": 1000}}))
        page.keyboard.press("Control+Enter")
        expect(row.get_by_role("status")).to_contain_text("403")
        assert answer_of(row)["error"]["details"]["rule"] == "no large searches"
        row.get_by_role("button", name="Describe").click()
        expect(row.get_by_label("Answer")).to_contain_text('"args_form"')
        row.get_by_role("button", name="Copy as curl").click()
        expect(row.get_by_label("Answer")).to_contain_text(f"curl -s '{server.url}/tools/search'")


def test_every_route_of_operators_is_tried_out_with_their_key(
    browser: Browser, server: ConsoleServer
) -> None:
    with visit(browser, server.url) as visited:
        page = visited.open("docs")
        expect(page.locator("#said")).to_contain_text("routes")
        assert page.locator("#listWaiting").count() == 0
        load(page, operator=OPERATOR)
        expect(page.locator("#listWaiting")).to_be_visible()
        described = server.operator("/operator/openapi.json")
        for path, item in described["paths"].items():
            for method, operation in item.items():
                row = opened(page, operation["operationId"])
                for parameter in operation["parameters"]:
                    if parameter["in"] == "path":
                        row.get_by_label(parameter["name"]).fill("nobody")
                row.get_by_role("button", name="Send").click()
                if operation["operationId"] == "followCalls":
                    expect(row.get_by_label("Answer")).to_contain_text("event: waiting")
                    row.get_by_role("button", name="Stop").click()
                    expect(row.get_by_role("status")).to_contain_text("Stopped.")
                    continue
                answer = answer_of(row)
                is_found = "{" not in path and operation["operationId"] != "explainCall"
                assert ("error" not in answer) is is_found, (method, path, answer)
        assert not any(OPERATOR in address for address in visited.addresses)


@pytest.mark.parametrize("name", ["mcp", "rpc", "execute", "livez", "health"])
def test_messages_and_other_routes_are_tried_out(browser: Browser, server: ConsoleServer, name: str) -> None:
    with visit(browser, server.url) as visited:
        row = opened(visited.open("docs"), name)
        if name == "execute":
            body = {"session_id": "docs", "tool_id": "search", "args": {"query": "a"}}
            row.get_by_label("Body").fill(json.dumps(body))
        if name == "rpc":
            written = row.get_by_label("Body").input_value().replace("NAME", "search")
            row.get_by_label("Body").fill(written.replace('"input": {}', '"input": {"query": "a"}'))
        row.get_by_role("button", name="Send").click()
        assert not answer_of(row).get("error")


def test_where_keys_are_required_the_page_asks_for_one(browser: Browser, locked: ConsoleServer) -> None:
    with visit(browser, locked.url) as visited:
        page = visited.open("docs")
        expect(page.locator("#said")).to_contain_text("Type a key above")
        assert "{" not in page.locator("body").inner_text()
        load(page, caller="wrong")
        expect(page.locator("#said")).to_contain_text("Type a key above")
        load(page, caller=ADA, operator="wrong")
        expect(page.locator("#said")).to_contain_text("PORTBOOK_OPERATOR_KEY")
        row = opened(page, "listTools")
        row.get_by_role("button", name="Send").click()
        assert answer_of(row)["tools"]
        row.get_by_role("button", name="Copy as curl").click()
        expect(row.get_by_label("Answer")).to_contain_text("Bearer $PORTBOOK_KEY")
        page.reload()
        assert page.locator("#caller").input_value() == ""


def test_a_route_is_found_by_words(browser: Browser, server: ConsoleServer) -> None:
    with visit(browser, server.url) as visited:
        page = visited.open("docs")
        expect(page.locator("#said")).to_contain_text("routes")
        page.get_by_label("Find a route").fill("GET ready")
        visible = page.locator("details.route:visible")
        expect(visible).to_have_count(1)
        expect(visible.locator("code")).to_have_text("/readyz")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 375])
def test_the_page_is_readable_named_and_within_the_screen(
    browser: Browser, server: ConsoleServer, scheme: Any, width: int
) -> None:
    with visit(browser, server.url, width=width, color_scheme=scheme) as visited:
        page = visited.open("docs")
        load(page, operator=OPERATOR)
        expect(page.locator("#listWaiting")).to_be_visible()
        for name in ("search", "listCalls", "decideOnPins"):
            opened(page, name)
        require_contrast(page)
        require_names(page)
        require_no_sideways_scroll(page)
