"""Keys: asked for where they are needed, held in memory alone, and explained where none could be right."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Route, expect

from support.browser import visit
from support.console_world import ADA, OPERATOR, ConsoleServer
from support.page_checks import require_contrast


@pytest.mark.covers("design.console.wrong-key")
def test_a_wrong_key_is_refused_in_words_and_the_right_one_opens(
    browser: Browser, server: ConsoleServer
) -> None:
    with visit(browser, server.url) as visited:
        page = visited.open()
        visited.give_key("a wrong key of the operator")
        expect(page.get_by_role("alert")).to_contain_text("PORTBOOK_OPERATOR_KEY")
        expect(page.locator("#key")).to_be_focused()
        expect(page.locator("#key")).to_have_value("")
        visited.give_key(OPERATOR)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()


def test_a_late_refusal_of_a_wrong_key_leaves_the_right_one(browser: Browser, server: ConsoleServer) -> None:
    with visit(browser, server.url) as visited:
        page = visited.open()
        held: list[Route] = []
        page.route("**/operator/proof", lambda route: held.append(route))  # noqa: PLW0108 - Playwright wants a function
        visited.give_key("a wrong key of the operator")
        expect(page.get_by_role("alert")).to_contain_text("PORTBOOK_OPERATOR_KEY")
        while not held:
            page.wait_for_timeout(20)
        visited.give_key(OPERATOR)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        with page.expect_response("**/operator/proof") as refused:
            held[0].continue_()
        assert refused.value.status == 401
        visited.go("#/policy")
        expect(page.get_by_text("no large searches")).to_be_visible()


@pytest.mark.covers("design.console.no-key-kept")
def test_a_key_is_in_no_address_no_storage_and_gone_when_it_is_forgotten(
    browser: Browser, server: ConsoleServer
) -> None:
    with visit(browser, server.url) as visited:
        page = visited.open()
        visited.give_key(OPERATOR)
        for view in ("calls", "tools", "upstreams", "policy", "proof", "waiting"):
            visited.go(f"#/{view}")
            expect(page.locator(f".view.{view}")).to_be_visible()
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        told = "\n".join([*visited.addresses, page.url, page.content()])
        assert OPERATOR not in told
        assert "operator's%20key" not in told
        assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
        assert page.evaluate("indexedDB.databases()") == []
        page.get_by_role("button", name="Forget keys").click()
        expect(page.locator("#key")).to_be_visible()
        expect(page.get_by_role("button", name="Forget keys")).to_be_hidden()
        visited.give_key(OPERATOR)
        expect(page.locator("#key")).to_be_hidden()
        page.reload()
        expect(page.locator("#key")).to_be_visible()


@pytest.mark.covers("design.console.no-operator-key")
def test_without_an_operator_key_the_page_says_what_to_set(browser: Browser, locked: ConsoleServer) -> None:
    with visit(browser, locked.url) as visited:
        page = visited.open("#/waiting")
        expect(page.get_by_text("This server has no operator key")).to_be_visible()
        expect(page.get_by_text('export PORTBOOK_OPERATOR_KEY="')).to_be_visible()
        expect(page.locator("#key")).to_have_count(0)
        assert not any("/operator/" in address or "/approvals" in address for address in visited.addresses)


def test_where_calls_need_a_key_tools_are_shown_with_one(browser: Browser, locked: ConsoleServer) -> None:
    with visit(browser, locked.url) as visited:
        page = visited.open()  # nobody can decide here, so it begins with the tools
        expect(page.get_by_role("heading", name="Tools", level=1)).to_be_visible()
        visited.give_key("nobody's key")
        expect(page.get_by_role("alert")).not_to_be_empty()
        visited.give_key(ADA)
        page.get_by_role("searchbox").fill("search")
        page.keyboard.press("Enter")
        page.get_by_label("query").fill("with a key")
        page.keyboard.press("Control+Enter")
        expect(page.locator(".answer")).to_contain_text("with a key")
        page.get_by_role("button", name="Copy as curl").click()
        command = page.get_by_role("region", name="The command")
        expect(command).to_contain_text('-H "authorization: Bearer $PORTBOOK_KEY"')
        assert ADA not in page.content()


def test_an_address_that_needs_a_key_is_explained_to_people(browser: Browser, locked: ConsoleServer) -> None:
    with visit(browser, locked.url) as visited:
        for address in ("tools", "tools/search", "openapi.json", "operator/calls", "operator/calls/x"):
            page = visited.open(address)
            expect(page.get_by_role("heading", name="A key is needed here")).to_be_visible()
            assert "{" not in page.locator("body").inner_text()
            require_contrast(page)
            page.get_by_role("link", name="Routes").click()
            expect(page).to_have_url(f"{locked.url}/docs")
    assert locked.server.request("/tools").status == 401
    assert "error" in locked.server.request("/tools").json
