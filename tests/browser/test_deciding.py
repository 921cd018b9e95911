"""Deciding: keys act on the call that an operator looks at, and on no other."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, Locator, Page, expect

from support.browser import Visit, visit
from support.console_world import OPERATOR, SETTINGS, ConsoleServer, served


def card_of(page: Page, approval: str) -> Locator:
    return page.locator(f"article[aria-labelledby='ticket-{approval}']")


def states(server: ConsoleServer, approvals: list[str]) -> list[str]:
    return [server.state(each)["state"] for each in approvals]


def test_a_call_that_is_decided_elsewhere_leaves_the_focus_where_somebody_types(
    console: Visit, server: ConsoleServer
) -> None:
    first, second = server.ask(), server.ask()
    page = console.page
    console.go(f"#/waiting/{first}")
    expect(card_of(page, second)).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.type("look")
    server.operator(f"/approvals/{first}", {"decision": "deny"})
    card = card_of(page, first)
    expect(card).to_contain_text("No longer waits")
    page.keyboard.type("s all good")
    page.keyboard.press("Enter")
    field = card.get_by_role("textbox")
    expect(field).to_be_focused()
    expect(field).to_have_value("look")
    page.keyboard.press("Escape")
    page.keyboard.press("a")
    expect(page.get_by_role("textbox")).to_have_count(1)
    assert states(server, [first, second]) == ["denied", "pending"]


def test_the_mark_stays_on_a_call_that_is_decided_elsewhere(console: Visit, server: ConsoleServer) -> None:
    first, second = server.ask(), server.ask()
    page = console.page
    console.go(f"#/waiting/{first}")
    expect(card_of(page, second)).to_be_visible()
    server.operator(f"/approvals/{first}", {"decision": "deny"})
    expect(card_of(page, first)).to_contain_text("No longer waits")
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    page.keyboard.press("j")
    expect(card_of(page, second)).to_be_focused()
    assert states(server, [second]) == ["pending"]


def test_after_a_decision_the_next_call_is_marked(console: Visit, server: ConsoleServer) -> None:
    before, decided, after = server.ask(), server.ask(), server.ask()
    page = console.page
    console.go(f"#/waiting/{decided}")
    expect(card_of(page, after)).to_be_visible()
    expect(card_of(page, decided)).to_be_focused()
    page.keyboard.press("d")
    page.keyboard.press("Enter")
    expect(card_of(page, after)).to_be_focused()
    page.keyboard.press("k")
    expect(card_of(page, before)).to_be_focused()


def test_the_enter_that_ends_a_composed_word_decides_nothing(console: Visit, server: ConsoleServer) -> None:
    approval = server.ask()
    page = console.page
    console.go(f"#/waiting/{approval}")
    expect(card_of(page, approval)).to_be_focused()
    page.keyboard.press("d")
    field = card_of(page, approval).get_by_role("textbox")
    field.evaluate(
        "(field) => field.dispatchEvent(new KeyboardEvent('keydown', "
        "{ key: 'Enter', isComposing: true, bubbles: true }))"
    )
    page.keyboard.type("whole reason")
    page.keyboard.press("Enter")
    expect(card_of(page, approval)).to_contain_text("Denied.")
    assert server.state(approval)["reason"] == "whole reason"


def test_a_waiting_call_beyond_the_oldest_is_shown_whole_and_decided(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        served(tmp_path, SETTINGS, {"PORTBOOK_OPERATOR_KEY": OPERATOR}) as crowded,
        visit(browser, crowded.url) as visited,
    ):
        crowded.operator(f"/approvals/{crowded.ask()}", {"decision": "approve", "reason": "a regular"})
        newest = [crowded.ask() for _ in range(101)][-1]
        page = visited.open(f"#/waiting/{newest}")
        visited.give_key(OPERATOR)
        card = card_of(page, newest)
        expect(card).to_contain_text("destructive")
        expect(card).to_contain_text("a regular")
        crowded.ask()  # makes the page look again
        expect(page.get_by_text("102 calls wait for a decision. 101 of them are shown.")).to_be_visible()
        card.get_by_role("button", name="Approve").click()
        page.keyboard.press("Enter")
        expect(card).to_contain_text("Approved: the caller may make this call once.")
        assert crowded.state(newest)["state"] == "approved"


def test_nothing_is_said_of_earlier_calls_where_nothing_is_known(
    console: Visit, server: ConsoleServer
) -> None:
    approval = server.ask()
    server.operator(f"/approvals/{approval}", {"decision": "deny"})
    console.go(f"#/waiting/{approval}")
    card = card_of(console.page, approval)
    expect(card).to_contain_text("Denied by operator (HTTP)")
    expect(card).not_to_contain_text("No earlier call")
