"""Checks over everything a page shows: contrast of texts, names of what can be used, and its width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Page

# WCAG 2.2, 1.4.3: 4.5 for text; 3 for text of 24 px, or of 18.66 px in bold.
_CONTRAST = Path(__file__).with_name("contrast.js").read_text("utf-8")

_TOO_WIDE = """
() => document.documentElement.scrollWidth > innerWidth
  ? [...document.querySelectorAll("main *")].filter((each) => each.getBoundingClientRect().right > innerWidth)
      .map((each) => each.outerHTML.slice(0, 100))
  : []
"""

# What people use or go to; whatever else can have the focus needs a name, too.
_NAMED_ROLES = frozenset(["button", "link", "textbox", "searchbox", "combobox", "checkbox", "progressbar"])
_NAMED_PARTS = frozenset(["dialog", "region", "article", "image", "navigation"])
# They have the focus without being anything: the page itself, and the place that it skips to.
_PLACES = frozenset(["RootWebArea", "main"])


def require_contrast(page: Page) -> int:
    """Every text has the contrast that WCAG AA asks for. Returns how many were checked."""
    found: Any = page.evaluate(_CONTRAST)
    assert found["problems"] == []
    return found["checked"]


def require_names(page: Page) -> int:
    """Everything that can be used has a name for screen readers. Returns how many were checked."""
    session: Any = page.context.new_cdp_session(page)
    nodes: Any = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    used = [node for node in nodes if not node["ignored"] and _is_used(node)]
    nameless = [node["role"]["value"] for node in used if not node.get("name", {}).get("value", "").strip()]
    assert nameless == []
    return len(used)


def _is_used(node: Any) -> bool:
    role = node["role"]["value"]
    properties = {each["name"]: each["value"].get("value") for each in node.get("properties", [])}
    return role in _NAMED_ROLES | _NAMED_PARTS or (bool(properties.get("focusable")) and role not in _PLACES)


def require_no_sideways_scroll(page: Page) -> None:
    assert page.evaluate(_TOO_WIDE) == []
