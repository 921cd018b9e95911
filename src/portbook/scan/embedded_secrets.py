"""Finds tokens and private keys in a text, but for those that only show a shape. Pure: no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from portbook.redaction.detectors import spans_of_marked_tokens, spans_of_shapes
from portbook.scan.defined_texts import DefinedText
from portbook.scan.finding import ScanCheck, ScanFinding, Tier
from portbook.text.late_pattern import late_pattern

__all__ = ["find_secrets"]

# Words that authors write where a secret would stand.
_STAND_IN: Final = late_pattern(
    r"(?i)example|your|placeholder|redacted|dummy|sample|changeme|user:pass|password|secret|xxxx|\*\*\*"
    r"|\.\.\.|1234567"
)
# Fewer different characters than this are typed by hand, as in `ghp_aaaa…`.
_LEAST_DIFFERENT: Final = 8


def find_secrets(given: DefinedText) -> Iterator[ScanFinding]:
    """Yield at most one finding about a text."""
    text = given.text
    if any(_is_real(text[start:end]) for start, end in spans_of_marked_tokens(text)):
        why = "has a token or a private key in it, which every client would get"
        yield ScanFinding(ScanCheck.SECRETS, Tier.HARD, given.pointer, why)
    elif any(_is_real(text[start:end]) for start, end in spans_of_shapes(text, "off")):
        why = "has something in it that looks like a secret"
        yield ScanFinding(ScanCheck.SECRETS, Tier.SOFT, given.pointer, why)


def _is_real(secret: str) -> bool:
    return len(Counter(secret)) >= _LEAST_DIFFERENT and _STAND_IN.search(secret) is None
