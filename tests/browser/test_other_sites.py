"""What pages of other sites can do to the console: nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.console_world import OPERATOR, ConsoleServer
from support.operator_console import until


@pytest.fixture(scope="module")
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


@pytest.fixture
def elsewhere(browser: Browser, foreign_site: str) -> Iterator[Page]:
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(foreign_site)
        yield page
    finally:
        context.close()


@pytest.mark.covers("design.console.origin")
def test_a_page_of_another_origin_cannot_approve(elsewhere: Page, server: ConsoleServer) -> None:
    """Not even with the key: no such page gets an answer, and nothing is decided."""
    approval = server.ask()
    outcomes = elsewhere.evaluate(
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
    assert outcomes == ["blocked", 0, 0]  # 0 is an answer that the page cannot read
    assert server.state(approval)["state"] == "pending"


def test_a_page_of_another_origin_runs_no_tool(elsewhere: Page, server: ConsoleServer) -> None:
    """Not even where calls need no key: what a browser sends on its own is refused by its origin."""
    outcomes = elsewhere.evaluate(
        """async (url) => {
          const body = JSON.stringify({ session_id: "s", args: { query: "from elsewhere" } });
          const attempt = async (how) => {
            try { return (await fetch(url, { method: "POST", body, ...how })).status; }
            catch { return "blocked"; }
          };
          const form = document.createElement("form");
          form.append(Object.assign(document.createElement("input"), { name: body }));
          Object.assign(form, { method: "post", action: url, enctype: "text/plain", target: "none" });
          document.body.append(Object.assign(document.createElement("iframe"), { name: "none" }), form);
          form.submit();
          return Promise.all([
            attempt({ mode: "no-cors", headers: { "content-type": "text/plain" } }),
            attempt({ headers: { "content-type": "application/json" } }),
          ]);
        }""",
        f"{server.url}/tools/search",
    )
    assert outcomes == [0, "blocked"]
    # The form's message and that of `no-cors` are on record, both refused; the third never left the browser.
    until(lambda: len(foreign_calls(server)) == 2)
    assert {each["code"] for each in foreign_calls(server)} == {403}


def foreign_calls(server: ConsoleServer) -> list[dict[str, Any]]:
    return server.operator("/operator/calls?reason=FOREIGN_HOST&door=http+/execute")["calls"]


@pytest.mark.covers("design.console.framed")
def test_no_other_site_frames_the_console_or_keeps_a_handle_on_it(
    elsewhere: Page, server: ConsoleServer
) -> None:
    for path in ("/", "/docs"):
        elsewhere.evaluate(
            "src => document.body.replaceChildren(Object.assign(document.createElement('iframe'), { src }))",
            server.url + path,
        )
        while not elsewhere.frames[-1].url.startswith("chrome-error:"):
            assert elsewhere.frames[-1].url != server.url + path
            elsewhere.wait_for_timeout(20)
    with elsewhere.expect_popup() as opened:
        elsewhere.evaluate("url => { window.handle = open(url); }", server.url)
    expect(opened.value.locator("#key")).to_be_visible()
    assert elsewhere.evaluate("handle.closed") is True  # cut off from what it opened
    assert opened.value.evaluate("window.opener") is None
