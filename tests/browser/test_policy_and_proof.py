"""Policy and Proof: which rule decides, what a changed file would decide, whether the log is whole."""

from __future__ import annotations

import json
import re

import pytest
from playwright.sync_api import expect

from support.browser import Visit
from support.console_world import ConsoleServer

STRICTER = """
[[policy.rules]]
name = "nobody nests"
tools = ["nest"]
action = "deny"
"""


def test_rules_are_listed_with_their_place(console: Visit) -> None:
    console.go("#/policy")
    row = console.page.get_by_role("row", name="refunds need a person")
    expect(row).to_contain_text("portbook.toml:4")
    expect(row).to_contain_text("ask")
    large = console.page.get_by_role("row", name="no large searches")
    expect(large).to_contain_text('/limit {"minimum":1000}')


@pytest.mark.covers("design.console.policy")
def test_a_call_is_explained_before_it_is_made(console: Visit) -> None:
    page = console.page
    console.go("#/policy")
    card = page.get_by_role("region", name="Explain a call")
    card.get_by_label("Tool", exact=True).fill("search")
    card.get_by_label("Arguments as JSON").fill('{"query": "x", "limit": 5000}')
    card.get_by_role("button", name="Explain").click()
    expect(card).to_contain_text("deny by no large searches (portbook.toml:8)")
    card.get_by_label("Tool", exact=True).fill("no.such.tool")
    card.get_by_label("Tool", exact=True).press("Enter")
    expect(card.locator(".bad")).to_be_visible()
    card.get_by_label("Arguments as JSON").fill("{")
    card.get_by_role("button", name="Explain").click()
    expect(card.locator(".bad")).to_contain_text("not JSON")


@pytest.mark.covers("design.console.replay")
def test_a_changed_file_is_tried_on_recorded_calls(console: Visit, server: ConsoleServer) -> None:
    server.call("nest", {"folder": {"name": "recorded"}})
    server.call("search", {"query": "recorded"})
    page = console.page
    console.go("#/policy")
    card = page.get_by_role("region", name="Try a changed policy")
    card.get_by_label("A portbook.toml, or its policy").fill(STRICTER)
    card.get_by_role("button", name="Replay").click()
    row = card.get_by_role("row", name="nest").first
    expect(row).to_contain_text("allow")
    expect(row).to_contain_text("deny")
    expect(row).to_contain_text("nobody nests")
    expect(card).to_contain_text("Unknown: a rule looks at arguments, which records do not hold.")
    card.get_by_label("A portbook.toml, or its policy").fill("[[policy.rules")
    card.get_by_role("button", name="Replay").click()
    expect(card.locator(".bad")).to_contain_text("/policy")


def test_the_rules_in_force_are_a_file_to_begin_with(console: Visit, server: ConsoleServer) -> None:
    server.ask()
    page = console.page
    console.go("#/policy")
    card = page.get_by_role("region", name="Try a changed policy")
    card.get_by_role("button", name="Begin with the rules in force").click()
    file = card.get_by_label("A portbook.toml, or its policy")
    expect(file).to_have_value(re.compile(r'where = \{ "/limit" = \{ "minimum" = 1000 \} \}'))
    card.get_by_role("button", name="Replay").click()
    expect(card.get_by_text("Every one of them would be decided the same way.")).to_be_visible()
    file.fill(file.input_value().replace('"ask"', '"deny"'))
    card.get_by_role("button", name="Replay").click()
    expect(card.get_by_role("list", name="In short")).to_contain_text(re.compile(r"\d+ calls?ask→deny"))
    card.get_by_role("row").filter(has_text="refund").first.get_by_role("link").click()
    expect(page).to_have_url(re.compile(r"tool=refund&caller=anonymous&rule=refunds\+need\+a\+person"))


def test_a_whole_call_that_is_pasted_is_explained(console: Visit) -> None:
    page = console.page
    console.go("#/policy")
    given = {"name": "search", "arguments": {"query": "x", "limit": 5000}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
    page.get_by_label("Arguments as JSON").fill(json.dumps(message))
    page.get_by_role("button", name="Explain").click()
    expect(page.get_by_label("Tool", exact=True)).to_have_value("search")
    expect(page.get_by_text("deny by no large searches (portbook.toml:8)")).to_be_visible()


def test_a_whole_log_is_proved_up_to_its_last_record(console: Visit, server: ConsoleServer) -> None:
    server.call("search", {"query": "proved"})
    console.go("#/proof")
    page = console.page
    expect(page.get_by_text("The log is whole.")).to_be_visible()
    expect(page.locator("main")).to_contain_text("execution/")
    expect(page.locator("main")).to_contain_text("No signing key is set")


@pytest.mark.covers("design.console.proof")
def test_a_changed_record_is_found(console: Visit, server: ConsoleServer) -> None:
    server.call("search", {"query": "genuine"})
    folder = server.folder / "runs" / "mcp_server" / "execution"
    latest = next(path for path in folder.iterdir() if ".latest." not in path.name)
    lines = latest.read_bytes()
    latest.write_bytes(lines.replace(b'"caller":"anonymous"', b'"caller":"somebody1"', 1))
    try:
        console.go("#/proof")
        expect(console.page.get_by_text("The log is broken.")).to_be_visible()
        expect(console.page.locator("main")).to_contain_text(f"{latest.name}:")
    finally:
        latest.write_bytes(latest.read_bytes().replace(b'"caller":"somebody1"', b'"caller":"anonymous"', 1))
