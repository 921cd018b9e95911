"""A real Chromium, and what its pages must never do."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, Request, sync_playwright

from support import sdks

# A minute is for a machine that does ten other things; what is never shown fails all the same.
PATIENCE_MS = 60_000

# The machine's own, under the names that distributions give it.
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_UNPACK = 'import chromium from "@sparticuz/chromium"; process.stdout.write(await chromium.executablePath());'
_VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


def program() -> str:
    """The browser of this machine, or the one of an npm package where it has none.

    Raises `sdks.Unavailable` if that cannot be installed: tests of a page are not skipped.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found:
        return found
    modules = sdks.chromium()
    # One at a time: a program that is still being written to its file cannot be started.
    with (modules.folder / "unpack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [modules.node.node, "--input-type=module", "-e", _UNPACK],
            cwd=modules.folder,
            env={**os.environ, "TMPDIR": str(modules.folder)},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
    return done.stdout


@contextlib.contextmanager
def chromium(executable: str) -> Generator[Browser]:
    # Whoever runs the tests as root has no sandbox; the pages are our own.
    options = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=options)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """One page with a fresh memory, and everything it did that a page of ours must not do."""

    page: Page
    origin: str
    errors: list[str] = field(default_factory=list[str])
    elsewhere: list[str] = field(default_factory=list[str])
    addresses: list[str] = field(default_factory=list[str])

    def watch(self) -> None:
        self.page.add_init_script(_VIOLATIONS)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._requested)

    def _requested(self, request: Request) -> None:
        parts = urlsplit(request.url)
        self.addresses.append(request.url)
        if f"{parts.scheme}://{parts.netloc}" != self.origin:
            self.elsewhere.append(request.url)

    def require_clean(self) -> None:
        """No exception, no violation of the content security policy, no request to elsewhere."""
        assert self.errors == []
        assert self.elsewhere == []
        violations: Any = self.page.evaluate("window.violations ?? []")
        assert violations == []

    # -- what operators do

    def open(self, place: str = "") -> Page:
        self.page.goto(f"{self.origin}/{place}")
        return self.page

    def go(self, place: str) -> None:
        self.page.evaluate("place => { location.hash = place; }", place)

    def give_key(self, key: str) -> None:
        self.page.locator("#key").fill(key)
        self.page.keyboard.press("Enter")


@contextlib.contextmanager
def visit(
    browser: Browser, origin: str, *, width: int = 1280, height: int = 800, **options: Any
) -> Generator[Visit]:
    """A page in a context of its own, closed however the block ends; if it ended well, it was clean."""
    context = browser.new_context(viewport={"width": width, "height": height}, **options)
    context.set_default_timeout(PATIENCE_MS)
    try:
        visited = Visit(context.new_page(), origin)
        visited.watch()
        yield visited
        visited.require_clean()
    finally:
        context.close()
