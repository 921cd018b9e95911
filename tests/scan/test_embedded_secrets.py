"""Which tokens are secrets, and which only show a shape."""

from __future__ import annotations

import pytest

from portbook.scan.embedded_secrets import GIVEN_SECRET, find_secrets
from portbook.scan.scanned_text_and_finding import DefinedText, Tier


@pytest.mark.parametrize(
    ("text", "tier"),
    [
        ("gh" + "p_16C7e42F292c6912E7710c838347Ae178B4a", Tier.HARD),
        ("ghp_" + "x" * 36, None),
        ("AK" + "IAIOSFODNN7EXAMPLE", None),
        ("https://admin:Zr5Tn2Wv7Xk4@db.example.com", Tier.HARD),
        ("https://admin:Zr5Tn2Wv7Xk4@localhost", Tier.SOFT),
        ("https://admin:administrator@db.example.com", Tier.SOFT),
        ("postgres://user:password@localhost/db", None),
        ("a token", None),
        (f"such as {GIVEN_SECRET}", Tier.HARD),
    ],
)
def test_a_secret_has_a_tier(text: str, tier: Tier | None) -> None:
    found = list(find_secrets(DefinedText("/description", text)))
    assert [each.tier for each in found] == ([tier] if tier else [])
