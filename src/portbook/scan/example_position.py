"""Whether a phrase is an example: quoted, after "such as", or what a tool looks for. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.text.late_pattern import late_pattern

__all__ = ["is_example"]

# Words that make an example of a quoted phrase after them.
_INTRODUCED: Final = late_pattern(
    r"\b(?:such as|for example|for instance|e\.g\.?|like|including|"
    r"(?:detect|flag|find|match|block|refus|reject|recogni[sz]|classif|report|catch|scan)\w*)\b"
)
# A sentence that begins with what the tool does about such phrases.
_FLAGGING: Final = late_pattern(
    r"^(?:\W*\w+\W+){0,3}?(?:detects?|flags?|blocks?|refuses?|rejects?|recogni[sz]es?|classif(?:y|ies)"
    r"|scans?|catch(?:es)?|warns?|lints?)\b"
)
_QUOTE: Final = late_pattern(r"\"[^\"]*\"|`[^`]*`|(?<!\w)'[^']*'(?!\w)")
_EXAMPLE_BEFORE: Final = late_pattern(
    r"(?:such as|for example|for instance|e\.g\.?|looks? like|, like)[,:]?\s*(?:[^.]{0,60})$"
)


def is_example(sentence: str, start: int, end: int) -> bool:
    """Return whether the phrase from `start` to `end` of a plain sentence is an example."""
    before = sentence[:start]
    if _FLAGGING.search(before):
        return True
    if _EXAMPLE_BEFORE.search(before):
        return True
    is_quoted = any(quote.start() < end and start < quote.end() for quote in _QUOTE.finditer(sentence))
    return is_quoted and _INTRODUCED.search(before) is not None
