"""Finds tokens and private keys in a text, but for those that only show a shape. Pure: no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from portbook.redaction.detectors import spans_of_marked_tokens, spans_of_shapes
from portbook.scan.scanned_text_and_finding import DefinedText, ScanCheck, ScanFinding, Tier
from portbook.text.late_pattern import late_pattern

__all__ = ["GIVEN_SECRET", "find_secrets"]

# What stands in a definition where its server wrote a secret that the settings give it.
GIVEN_SECRET: Final = "[a secret that the settings give]"  # noqa: S105 - stands for one


# Words that authors write where a secret would stand.
_STAND_IN: Final = late_pattern(
    r"(?i)example|your|placeholder|redacted|dummy|sample|changeme|user:pass|password|secret|xxxx|\*\*\*"
    r"|\.\.\.|1234567"
)
# Fewer different characters than this are typed by hand, as in `ghp_aaaa…`.
_LEAST_DIFFERENT: Final = 8
# A password before the host of an address; one of this machine alone is a default.
_IN_ADDRESS: Final = late_pattern(
    r"://[^\s/:@]{1,64}:(?P<password>[^\s/:@]{8,200})@(?!localhost|127\.|host\b)"
)


def find_secrets(given: DefinedText) -> Iterator[ScanFinding]:
    """Yield at most one finding about a text."""
    text = given.text
    has_token = any(_is_real(text[start:end]) for start, end in spans_of_marked_tokens(text))
    if GIVEN_SECRET in text:
        why = "had a secret in it that the settings give; if it is none, write `secret = false` beside it"
        yield ScanFinding(ScanCheck.SECRETS, Tier.HARD, given.pointer, why)
    elif has_token or any(_is_password(each["password"]) for each in _IN_ADDRESS.finditer(text)):
        why = "has a token, a password or a private key in it, which every client would get"
        yield ScanFinding(ScanCheck.SECRETS, Tier.HARD, given.pointer, why)
    elif any(_is_real(text[start:end]) for start, end in spans_of_shapes(text, "off")):
        why = "has something in it that looks like a secret"
        yield ScanFinding(ScanCheck.SECRETS, Tier.SOFT, given.pointer, why)


def _is_real(secret: str) -> bool:
    return len(Counter(secret)) >= _LEAST_DIFFERENT and _STAND_IN.search(secret) is None


def _is_password(text: str) -> bool:
    has_both = any(map(str.isdigit, text)) and any(map(str.isalpha, text))
    return has_both and _is_real(text)
