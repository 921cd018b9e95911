"""Waiting: an operator sees what waits, and decides."""

from __future__ import annotations

import re

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


@pytest.mark.covers("design.console.glance")
def test_the_first_page_tells_what_happens_what_is_behind_and_whether_it_is_proved(
    console: Visit, server: ConsoleServer
) -> None:
    page = console.page
    glance = page.get_by_role("navigation", name="At a glance")
    expect(glance.get_by_role("link", name=re.compile(r"^Calls, last hour ?\d+"))).to_be_visible()
    expect(glance.get_by_role("link", name=re.compile("Upstreams"))).to_contain_text("None")
    expect(glance.get_by_role("link", name=re.compile("Log"))).to_contain_text(
        re.compile(r"Whole\d+ records? verified")
    )
    glance.get_by_role("link", name=re.compile("Calls")).click()
    expect(page).to_have_url(re.compile("within=1h"))
    page.keyboard.press("Shift+Tab")
    page.locator("#skip").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    expect(page).to_have_url(re.compile("within=1h"))


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
