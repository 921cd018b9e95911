"""Every view, light and dark, wide and narrow: readable, named, within the screen, and text is only text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, expect

from support.browser import Visit, visit
from support.console_world import OPERATOR, ConsoleServer, served
from support.operator_console import until
from support.page_checks import require_contrast, require_names, require_no_sideways_scroll
from support.pinned_folder import BREAKING, LIST, PinnedFolder

HOSTILE = "<img src=x onerror=alert(1)>\u202e<b>bold</b>"
HOSTILE_TOOLS = f"""
from typing import Literal

from pydantic import BaseModel, Field

from portbook import Context, Toolset

toolset = Toolset("hostile")
WORDS = {HOSTILE!r}
CITY = {{"type": "string", "description": WORDS, "enum": [WORDS]}}
ASKED = {{"properties": {{"city": CITY}}, "required": ["city"]}}


class Inner(BaseModel):
    text: str = Field(WORDS, alias=WORDS, description=WORDS)
    kind: Literal[WORDS] = WORDS


@toolset.tool(effect="read", description=WORDS + "\\n\\nsecond paragraph")
async def strange(context: Context, inner: Inner) -> str:
    await context.progress(1, 2, WORDS)
    await context.log("info", WORDS)
    await context.elicit(WORDS + "\\nsecond line", ASKED)
    raise ValueError(WORDS)


@toolset.tool(effect="write", description=WORDS, tags=["tag"], title=WORDS)
def mark(text: str = WORDS, more: str = "") -> str:
    return text

@toolset.resource("notes://all", description=WORDS)
def note() -> str:
    return WORDS

@toolset.prompt(description=WORDS)
def greet(name: str) -> str:
    return WORDS
"""
RULES = f"""
[python]
toolsets = ["hostile.py"]
[[policy.rules]]
name = '{HOSTILE.replace(chr(0x202E), "")}'
tools = ["mark"]
action = "ask"
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleServer]:
    """A server where every text of strangers is markup, with an MCP server that has changed."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile.py").write_text(HOSTILE_TOOLS)
    pinned = PinnedFolder(folder, before=RULES, more='trust = "first-use"')
    with served(folder, pinned.settings.read_text(), {"PORTBOOK_OPERATOR_KEY": OPERATOR}) as running:
        for at in range(2):
            answer = running.call("mark", {"text": HOSTILE, "more": str(at)}, session_id=HOSTILE)
            approval = answer.json["error"]["details"]["approval_id"]
            if at == 0:
                running.operator(f"/approvals/{approval}", {"decision": "approve", "reason": HOSTILE})
        running.operator("/operator/upstreams/box", {"action": "restart"})
        wait_until(running, "tools")
        pinned.offer({**BREAKING, "description": HOSTILE}, LIST)
        wait_until(running, "withheld")
        yield running


def wait_until(server: ConsoleServer, counted: str) -> None:
    """Wait until the MCP server has some of what is counted."""
    until(lambda: any(each[counted] for each in server.operator("/operator/upstreams")["upstreams"]))


VIEWS = {
    "waiting": ".ticket",
    "calls": "tbody tr",
    "tools": ".groups a",
    "tools/mark": "article.tool",
    "tools/strange": ".field-name",
    "upstreams": ".definition",
    "policy": "tbody tr",
    "proof": ".verdict",
}
OFFERS = {"tools/resource%3Anotes%3A%2F%2Fall": "article.tool", "tools/prompt%3Agreet": "article.tool"}
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"color_scheme": "light", "width": 360, "height": 740, "has_touch": True},
    "dark phone": {"color_scheme": "dark", "width": 360, "height": 740, "has_touch": True},
}


@pytest.mark.covers("design.console.readable")
@pytest.mark.parametrize("look", LOOKS)
def test_every_view_is_readable_named_and_within_the_screen(
    browser: Browser, world: ConsoleServer, look: str
) -> None:
    with visit(browser, world.url, **LOOKS[look]) as visited:
        page = visited.open()
        expect(page.locator("#key")).to_be_visible()
        require_all(visited)
        visited.give_key(OPERATOR)
        for place, settled in VIEWS.items():
            visited.go(f"#/{place}")
            expect(page.locator(settled).first).to_be_visible()
            if place == "tools/mark":
                page.get_by_role("button", name="Call", exact=True).click()
                expect(page.locator(".answer.bad")).to_be_visible()
            if place == "policy":
                page.get_by_label("Tool", exact=True).fill("mark")
                page.get_by_role("button", name="Explain").click()
                expect(page.get_by_text("what to do")).to_be_visible()
            require_all(visited)
        visited.go("#/calls?within=range&rule=x")
        expect(page.get_by_label("From")).to_be_visible()
        require_all(visited)
        visited.go("#/calls")
        page.locator("tbody tr a").first.click()
        expect(page.get_by_role("article", name="The call")).to_be_visible()
        require_all(visited)


def require_all(visited: Visit) -> None:
    # What is folded away is read as well.
    visited.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
    assert require_contrast(visited.page) > 5
    assert require_names(visited.page) > 5
    require_no_sideways_scroll(visited.page)
    visited.require_clean()


def test_dark_is_dark_and_light_is_light(browser: Browser, world: ConsoleServer) -> None:
    def ground(scheme: str) -> str:
        with visit(browser, world.url, color_scheme=scheme) as visited:
            return visited.open().evaluate("getComputedStyle(document.body).backgroundColor")

    assert (ground("light"), ground("dark")) == ("rgb(245, 246, 248)", "rgb(14, 18, 24)")


@pytest.mark.covers("design.console.hostile")
def test_markup_from_strangers_is_shown_as_text_everywhere(browser: Browser, world: ConsoleServer) -> None:
    with visit(browser, world.url) as visited:
        page = visited.open()
        dialogs: list[str] = []

        def tell(dialog: Dialog) -> None:
            dialogs.append(dialog.message)
            dialog.dismiss()

        page.on("dialog", tell)
        visited.give_key(OPERATOR)
        shown = 0
        for place, settled in {**VIEWS, **OFFERS}.items():
            visited.go(f"#/{place}")
            expect(page.locator(settled).first).to_be_visible()
            text = page.locator("main").inner_text()
            shown += "<img src=x onerror=alert(1)>" in text
            assert "\u202e" not in text
            assert page.locator("main img, main b").count() == 0
        assert shown >= 7
        visited.go("#/tools/mark")
        page.get_by_label("text").fill(HOSTILE)
        page.keyboard.press("Control+Enter")
        expect(page.locator(".answer")).to_be_visible()
        visited.go("#/tools/strange")
        page.get_by_role("button", name="Call", exact=True).click()
        question = page.get_by_role("region", name="The tool asks")
        expect(question).to_contain_text("<img src=x onerror=alert(1)>")
        expect(page.get_by_role("log")).to_contain_text("<img src=x onerror=alert(1)>")
        text = page.locator("main").inner_text()
        assert "\u202e" not in text
        assert "u000a" not in text  # lines are lines, not escapes
        question.get_by_role("button", name="Answer").click()
        expect(page.locator(".answer.bad")).to_be_visible()
        visited.go("#/calls?tool=" + "<img src=x onerror=alert(1)>")
        expect(page.locator(".calls-list .empty, .calls-list .bad").first).to_be_visible()
        assert page.locator("main img").count() == 0
        assert dialogs == []
