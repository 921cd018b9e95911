"""Numbers that no double holds: shown as the call has them, and sent as they were typed."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from support.browser import Visit
from support.console_world import ConsoleServer

LARGE = 2**53 + 1


def test_a_large_number_is_shown_to_its_last_digit_where_it_is_approved(
    console: Visit, server: ConsoleServer
) -> None:
    server.cents = LARGE - 2
    server.operator(f"/approvals/{server.ask()}", {"decision": "approve"})
    approval = server.ask()
    console.go(f"#/waiting/{approval}")
    card = console.page.locator(".ticket.marked")
    changed = card.get_by_role("row").filter(has_text="/cents")
    expect(changed).to_contain_text(str(LARGE - 1))
    expect(changed).to_contain_text(str(LARGE))
    card.get_by_text("All arguments").click()
    expect(card.get_by_role("region", name="Arguments of refund")).to_contain_text(f'"cents": {LARGE}')
    console.go(f"#/calls?approval={approval}")
    console.page.locator("tbody tr a").first.click()
    shown = console.page.get_by_role("region", name="Arguments, redacted")
    expect(shown).to_contain_text(f'"cents": {LARGE}')


@pytest.mark.parametrize("number", [str(LARGE), "-123456789012345678901234567890"])
def test_a_large_number_in_a_form_is_sent_as_it_was_typed(
    console: Visit, server: ConsoleServer, number: str
) -> None:
    page = console.page
    console.go("#/tools/refund")
    page.get_by_label("cents").fill(number)
    page.get_by_role("button", name="As JSON").click()
    page.get_by_role("button", name="As a form").click()
    expect(page.get_by_label("cents")).to_have_value(number)
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text(f'"cents":{number}')
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.locator(".answer").first).to_contain_text(re.compile("approv", re.IGNORECASE))
    newest = server.operator("/approvals?state=pending")["approvals"][0]
    assert newest["arguments"]["cents"] == int(number)
