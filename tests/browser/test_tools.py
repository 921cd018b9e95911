"""Tools: found by typing, called from a form that is made of the schema."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.browser import Visit, visit
from support.console_world import OPERATOR, ConsoleServer, served


@pytest.fixture
def tools(console: Visit) -> Visit:
    console.go("#/tools")
    expect(console.page.get_by_role("searchbox")).to_be_visible()
    return console


def result_in(page: Page) -> Any:
    answer = page.locator(".answer").first
    expect(answer).to_contain_text("Result after")
    return json.loads(answer.get_by_role("region", name="Result").inner_text())


def fill_order(page: Page) -> None:
    page.get_by_label("street").fill("Long Street 1")
    page.get_by_role("button", name="Add an item to items").click()
    page.get_by_label("sku").fill("A-1")
    page.get_by_label("count").fill("3")
    page.get_by_role("combobox", name="Kind of payment").select_option("Bank")
    page.get_by_label("iban").fill("DE00")


ORDERED = {
    "address": {"street": "Long Street 1", "city": "Bremen", "kind": "home"},
    "items": [{"sku": "A-1", "count": 3}],
    "payment": {"method": "bank", "iban": "DE00"},
}


@pytest.mark.covers("design.console.form")
def test_nested_and_optional_arguments_are_filled_in_and_the_tool_is_called(tools: Visit) -> None:
    page = tools.page
    page.get_by_role("link", name=re.compile("^order")).click()
    fill_order(page)
    page.get_by_role("button", name="Add billing").click()
    expect(page.locator("legend").filter(has_text="billing")).to_have_text("billing")
    page.get_by_role("group", name="billing").get_by_label("street").fill("Short Street 2")
    page.get_by_role("group", name="billing").get_by_label("kind").select_option("work")
    page.get_by_label("note").fill("ring twice")
    page.get_by_label("express").select_option("true")
    page.keyboard.press("Control+Enter")
    assert result_in(page) == {
        **ORDERED,
        "billing": {"street": "Short Street 2", "city": "Bremen", "kind": "work"},
        "note": "ring twice",
        "express": True,
    }


def test_what_is_left_out_is_not_sent(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/order")
    fill_order(page)
    page.get_by_role("button", name="Call", exact=True).click()
    assert result_in(page) == {**ORDERED, "billing": None, "note": None, "express": False}
    page.locator(".answer summary").click()
    sent = json.loads(page.locator(".answer").get_by_role("region", name="Arguments").inner_text())
    assert sent == {
        "address": {"street": "Long Street 1"},
        "items": [{"sku": "A-1", "count": 3}],
        "payment": {"method": "bank", "iban": "DE00"},
    }


def test_the_form_and_its_json_are_the_same_arguments(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/order")
    fill_order(page)
    page.get_by_role("button", name="As JSON").click()
    raw = page.get_by_label("Arguments as JSON")
    given = json.loads(raw.input_value())
    given["items"].append({"sku": "B-2"})
    given["billing"] = {"street": "Here"}
    raw.fill(json.dumps(given))
    page.get_by_role("button", name="As a form").click()
    expect(page.get_by_label("sku").nth(1)).to_have_value("B-2")
    expect(page.get_by_role("group", name="billing").get_by_label("street")).to_have_value("Here")
    page.get_by_role("button", name="Remove items 1").click()
    expect(page.get_by_label("sku")).to_have_value("B-2")
    page.get_by_role("button", name="Call", exact=True).click()
    result = result_in(page)
    assert [item["sku"] for item in result["items"]] == ["B-2"]
    assert result["billing"]["street"] == "Here"


def test_a_schema_that_contains_itself_has_a_form(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/nest")
    page.get_by_label("name").fill("inner")
    page.get_by_role("button", name="Add parent").click()
    page.get_by_label("name").nth(1).fill("outer")
    page.get_by_role("button", name="Call", exact=True).click()
    assert result_in(page) == {"result": "inner"}


def test_what_is_wrong_is_said_at_its_field(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/search")
    page.get_by_label("limit").fill("many")
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.get_by_text("Type a number.")).to_be_visible()
    page.get_by_label("limit").fill("2.5")
    page.get_by_role("button", name="Call", exact=True).click()
    problem = page.locator("[data-pointer='/limit'] .problem")
    expect(problem).to_contain_text("integer")


def test_progress_messages_and_history_of_a_tool(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/slow")
    page.get_by_label("steps").fill("4")
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.get_by_role("progressbar", name="Progress")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("info: finished 2")
    assert result_in(page) == {"result": "finished all"}
    tools.go("#/tools/search")
    expect(page.get_by_label("query")).to_be_visible()
    tools.go("#/tools/slow")
    expect(page.get_by_text("finished all")).to_be_visible()  # the answers are still there
    page.get_by_role("link", name="its calls").click()
    expect(page.locator("tbody tr").first).to_contain_text("slow")
    tools.go("#/tools/search")
    page.get_by_label("query").fill("recorded")
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name="its record").click()
    expect(page.get_by_role("article", name="The call")).to_contain_text("search")


def test_a_long_answer_opens_in_part(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/long")
    page.get_by_role("button", name="Call", exact=True).click()
    page.get_by_role("button", name="Show all 200,018 characters").click()
    assert len(page.get_by_role("region", name="Result", exact=True).inner_text()) == 200_018


def test_a_running_tool_can_be_cancelled(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/slow")
    page.get_by_label("steps").fill("500")
    page.get_by_role("button", name="Call", exact=True).click()
    expect(page.get_by_role("progressbar", name="Progress")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".answer")).to_contain_text("Cancelled.")


@pytest.mark.covers("design.console.question")
def test_a_question_of_a_tool_is_answered_in_the_page(tools: Visit) -> None:
    page = tools.page
    tools.go("#/tools/book")
    page.get_by_role("button", name="Call", exact=True).click()
    question = page.get_by_role("region", name="The tool asks")
    expect(question).to_contain_text("Where to?")
    question.get_by_label("city").fill("Oslo")
    question.get_by_role("button", name="Answer").click()
    assert result_in(page) == {"result": "Booked: Oslo"}
    page.get_by_role("button", name="Call", exact=True).click()
    page.get_by_role("region", name="The tool asks").get_by_role("button", name="Decline").click()
    expect(page.locator(".answer").first).to_contain_text("Nothing was booked.")


@pytest.mark.covers("design.console.approval-link")
def test_an_answer_that_needs_approval_links_to_it_and_runs_after_it(
    tools: Visit, server: ConsoleServer
) -> None:
    page = tools.page
    tools.go("#/tools/refund")
    page.get_by_label("cents").fill("777")
    page.get_by_role("button", name="Call", exact=True).click()
    page.get_by_role("link", name="Decide it under Waiting").click()
    expect(page.locator(".ticket.marked")).to_contain_text('"cents": 777')
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Approved: the caller")).to_be_visible()
    tools.go("#/tools/refund")
    expect(page.get_by_label("cents")).to_have_value("777")  # as it was left
    page.get_by_role("button", name="Repeat the call").click()
    assert result_in(page) == {"result": 777}


def test_a_call_is_copied_as_commands_that_work(tools: Visit) -> None:
    page = tools.page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    tools.go("#/tools/search")
    page.get_by_label("query").fill("it's")
    page.get_by_role("button", name="Copy as curl").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    curl: str = page.evaluate("navigator.clipboard.readText()")
    assert curl == (
        f"curl -s '{tools.origin}/tools/search' \\\n  -H 'content-type: application/json' \\\n"
        """  -d '{"session_id":"console","args":{"query":"it'\\''s"}}'"""
    )
    page.get_by_role("button", name="Copy as portbook call").click()
    expect(page.get_by_role("region", name="The command")).to_contain_text(
        """portbook call 'search' --input '{"query":"it'\\''s"}'"""
    )


def test_resources_are_read_and_prompts_are_got(tools: Visit) -> None:
    page = tools.page
    page.get_by_role("link", name="notes://{name}").click()
    page.get_by_role("textbox", name="name required").fill("milk")
    page.get_by_role("button", name="Read the resource").click()
    expect(page.get_by_text("The note milk.")).to_be_visible()
    page.get_by_role("link", name=re.compile("^greet")).click()
    # The form before it has a field of the same name.
    expect(page.get_by_role("button", name="Get the prompt")).to_be_visible()
    page.get_by_role("textbox", name="name required").fill("Ada")
    page.get_by_role("button", name="Get the prompt").click()
    expect(page.get_by_text("Please greet Ada.")).to_be_visible()


MANY = """
from portbook import Toolset

toolset = Toolset("many")

for at in range(1000):
    @toolset.tool(effect="read", name=f"part{at % 20}.tool_{at}")
    def tool(text: str) -> str:
        \"\"\"One of many.\"\"\"
        return text
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    folder = tmp_path_factory.mktemp("many")
    (folder / "many.py").write_text(MANY)
    settings = '[python]\ntoolsets = ["many.py"]\n'
    with served(folder, settings, {"PORTBOOK_OPERATOR_KEY": OPERATOR}) as running:
        yield running


@pytest.mark.covers("design.console.many-tools")
def test_a_thousand_tools_fit_on_a_page_and_are_found_by_typing(
    browser: Browser, many: ConsoleServer
) -> None:
    with visit(browser, many.url) as visited:
        page = visited.open("#/tools")
        expect(page.get_by_text("1,000 in all")).to_be_visible()
        expect(page.locator(".groups summary")).to_have_count(20)
        assert page.evaluate("document.documentElement.scrollHeight") <= 1000
        page.keyboard.press("/")
        page.keyboard.type("tool_77")
        expect(page.locator(".groups a")).to_have_count(11)
        page.keyboard.type(" part17")
        expect(page.locator(".groups a")).to_have_count(2)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="part17.tool_77", exact=True)).to_be_visible()
        expect(page.get_by_role("button", name="Call", exact=True)).to_be_in_viewport()
