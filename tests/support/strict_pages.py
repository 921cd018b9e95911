"""A page that runs its own script and loads nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import re

from support.mcp_http_client import Exchange

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def own_parts(page: str) -> dict[str, list[str]]:
    return {
        "script-src": re.findall(r"<script>(.*?)</script>", page, re.DOTALL),
        "style-src": re.findall(r"<style>(.*?)</style>", page, re.DOTALL),
    }


def require_strict(answer: Exchange) -> str:
    """Check what a page may do: what is in it, and nothing from elsewhere. Return the page."""
    page = answer.body.decode()
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert (answer.headers["cache-control"], answer.headers["referrer-policy"]) == ("no-store", "no-referrer")
    for name, value in (("opener", "same-origin"), ("resource", "same-origin"), ("embedder", "require-corp")):
        assert answer.headers[f"cross-origin-{name}-policy"] == value
    rules = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert (
        rules["default-src"]
        == rules["base-uri"]
        == rules["form-action"]
        == rules["frame-ancestors"]
        == "'none'"
    )
    for rule, parts in own_parts(page).items():
        digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
        assert rules.get(rule, "") == " ".join(f"'sha256-{digest}'" for digest in digests)
    assert not re.search(r"""(?:src|href)=["']?(?:[a-z]+:)?//""", page)
    assert not re.search(r"""<[^>]+ (?:on\w+|style)=""", page)
    return page
