"""Waiting: an operator sees what waits, and decides."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Browser, expect

from support.browser import Visit, visit
from support.console_world import OPERATOR, ConsoleServer


@pytest.mark.covers("design.console.approve")
def test_two_keys_approve_a_call_and_it_may_run(console: Visit, server: ConsoleServer) -> None:
    approval = server.ask()
    page = console.page
    card = page.get_by_role("article", name="refund").last
    expect(card).to_contain_text("refunds need a person (portbook.toml:4)")
    expect(card).to_contain_text("Give money back.")
    expect(card).to_contain_text("destructive")
    console.go(f"#/waiting/{approval}")
    expect(page.locator(".ticket.marked")).to_contain_text(f'"cents": {server.cents}')
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Approved: the caller may make this call once.")).to_be_visible()
    ticket = server.state(approval)
    assert (ticket["state"], ticket["decided_by"], ticket["reason"]) == ("approved", "operator (HTTP)", None)
    assert server.call("refund", {"cents": server.cents}, approval_id=approval).status == 200


def test_a_call_is_denied_with_a_reason(console: Visit, server: ConsoleServer) -> None:
    approval = server.ask()
    console.go(f"#/waiting/{approval}")
    card = console.page.locator(f"article[aria-labelledby='ticket-{approval}']")
    expect(card).to_contain_text(f'"cents": {server.cents}')
    card.get_by_role("button", name="Deny").click()
    card.get_by_role("textbox", name="Reason to deny refund").fill("not today")
    card.get_by_role("button", name="Deny").click()
    expect(card).to_contain_text("Denied.")
    ticket = server.state(approval)
    assert (ticket["state"], ticket["reason"]) == ("denied", "not today")


@pytest.mark.covers("design.console.difference")
def test_the_difference_to_the_last_approved_call_is_shown(console: Visit, server: ConsoleServer) -> None:
    first = server.ask()
    server.operator(f"/approvals/{first}", {"decision": "approve", "reason": "a regular"})
    second = server.ask(password="hunter2 hunter2")
    console.go(f"#/waiting/{second}")
    card = console.page.locator(".ticket.marked")
    expect(card).to_contain_text("Different from the last approved call")
    expect(card).to_contain_text("a regular")
    changed = card.get_by_role("row").filter(has_text="/cents")
    expect(changed).to_contain_text(str(server.cents - 1))
    expect(changed).to_contain_text(str(server.cents))
    expect(card).not_to_contain_text("hunter2")


@pytest.mark.covers("design.console.paused")
def test_what_waits_is_counted_in_the_title_and_not_while_nobody_looks(
    console: Visit, server: ConsoleServer
) -> None:
    page = console.page
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    before = len(server.operator("/approvals?state=pending")["approvals"])
    server.ask()
    expect(page).to_have_title(re.compile(rf"^\({before + 1}\) Waiting"))
    page.evaluate(
        "() => { Object.defineProperty(document, 'hidden', { get: () => window.away, configurable: true });"
        " window.away = true; document.dispatchEvent(new Event('visibilitychange')); }"
    )
    expect(page.get_by_text("Paused", exact=True)).to_be_visible()
    asked = len(console.addresses)
    server.ask()
    page.wait_for_timeout(700)
    assert len(console.addresses) == asked
    expect(page).to_have_title(re.compile(rf"^\({before + 1}\) Waiting"))
    page.evaluate("() => { window.away = false; document.dispatchEvent(new Event('visibilitychange')); }")
    expect(page).to_have_title(re.compile(rf"^\({before + 2}\) Waiting"))


def test_a_ticket_that_was_decided_elsewhere_says_so(console: Visit, server: ConsoleServer) -> None:
    approval = server.ask()
    console.go(f"#/waiting/{approval}")
    card = console.page.locator(f"article[aria-labelledby='ticket-{approval}']")
    expect(card).to_be_visible()
    server.operator(f"/approvals/{approval}", {"decision": "deny"})
    expect(card).to_contain_text("No longer waits: decided elsewhere, or expired.")
    expect(card.get_by_role("button", name="Approve")).to_be_hidden()


@pytest.mark.covers("design.console.keyboard")
def test_the_keyboard_alone_opens_the_console_and_decides(browser: Browser, server: ConsoleServer) -> None:
    approval = server.ask()
    with visit(browser, server.url) as visited:
        page = visited.open()
        expect(page.locator("#key")).to_be_focused()
        page.keyboard.type(OPERATOR)
        page.keyboard.press("Enter")
        expect(page.locator(".ticket.marked")).to_be_visible()
        for _ in range(len(server.operator("/approvals?state=pending")["approvals"])):
            page.keyboard.press("j")
        expect(page.locator(".ticket.marked")).to_contain_text(f'"cents": {server.cents}')
        page.keyboard.press("d")
        page.keyboard.type("by keyboard")
        page.keyboard.press("Enter")
        expect(page.get_by_text("Denied.").first).to_be_visible()
        page.keyboard.press("g")
        page.keyboard.press("c")
        expect(page.get_by_role("heading", name="Calls", level=1)).to_be_visible()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_be_hidden()
    assert server.state(approval)["reason"] == "by keyboard"


def test_the_address_of_the_page_before_leads_to_the_console(console: Visit, server: ConsoleServer) -> None:
    console.page.goto(f"{server.url}/approvals")
    expect(console.page).to_have_url(f"{server.url}/#/waiting")
    console.page.goto(f"{server.url}/approvals/0123")
    expect(console.page).to_have_url(f"{server.url}/#/waiting/0123")


@pytest.fixture
def foreign_site() -> Iterator[str]:
    """A page of a different origin."""

    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, format: str, *args: object) -> None:
            pass

    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{site.server_port}"
    finally:
        site.shutdown()
        site.server_close()


@pytest.mark.covers("design.console.origin")
def test_a_page_of_another_origin_cannot_approve(
    browser: Browser, server: ConsoleServer, foreign_site: str
) -> None:
    """Not even with the key: no such page gets an answer, and nothing is decided."""
    approval = server.ask()
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(foreign_site)
        outcomes = page.evaluate(
            """async ([url, key]) => {
              const json = "application/json";
              const tries = [
                { mode: "cors", headers: { "content-type": json, authorization: "Bearer " + key } },
                { mode: "no-cors", headers: { "content-type": "text/plain" } },
                { mode: "no-cors", headers: {}, credentials: "include" },
              ];
              const attempt = async (how) => {
                const body = JSON.stringify({ decision: "approve" });
                try { return (await fetch(url, { method: "POST", body, ...how })).status; }
                catch { return "blocked"; }
              };
              return Promise.all(tries.map(attempt));
            }""",
            [f"{server.url}/approvals/{approval}", OPERATOR],
        )
    finally:
        context.close()
    assert outcomes == ["blocked", 0, 0]  # 0 is an answer that the page cannot read
    assert server.state(approval)["state"] == "pending"
