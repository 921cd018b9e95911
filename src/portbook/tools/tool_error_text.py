"""What an exception of a tool says to the caller: its message, code and data, checked. Pure: no I/O.

1. A `ToolError` is meant for the caller, with everything in it.
2. Any other exception with a `code` is meant, too, but its text and its data may quote anything.
3. All others are crashes, and say nothing.
"""

from __future__ import annotations

import re
from typing import Any, Final

from portbook.canonical import NotJSON, json_bytes
from portbook.errors import Refused
from portbook.model import JSON
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.tools.spec import ToolError
from portbook.wire.parsing import parse

__all__ = ["MAX_CODE", "MAX_MESSAGE", "BadStatement", "StatedError", "stated_bytes", "stated_error"]

# The lengths that the schema of result envelopes allows.
MAX_CODE: Final = 200
MAX_MESSAGE: Final = 2000

# A code with spaces is a sentence, and a sentence may quote a value.
_CODE: Final = late_pattern(r"[!-~]{1,200}", re.ASCII)


class BadStatement(ValueError):
    """A `ToolError` that cannot be passed on; the message says what is wrong with it."""


class StatedError(NamedTuple):
    """An error as its tool states it."""

    message: str = ""
    code: str | None = None
    data: JSON = None
    retryable: bool | None = None
    """Whether a retry may help; None where the tool does not say."""


def stated_error(error: BaseException) -> StatedError | None:
    """Return what `error` says to the caller; None if it is a crash.

    Raises `BadStatement` where the code, the data or the `retryable` of a `ToolError` has the wrong type.
    """
    if isinstance(error, ToolError):
        return _meant(error)
    # An exception that is not an error, such as SystemExit, has a message as its code.
    code = _member(error, "code") if isinstance(error, Exception) else None
    return StatedError(code=_plain(code)) if isinstance(code, str) and _CODE.fullmatch(code) else None


def stated_bytes(error: BaseException) -> int:
    """Return the size of the data that `error` states, as JSON; 0 where it has none, or none that is JSON."""
    data = _member(error, "data") if isinstance(error, ToolError) else None
    try:
        return 0 if data is None else len(json_bytes(data))
    except NotJSON:
        return 0


def _meant(error: ToolError) -> StatedError:
    # A subclass may set none of these, or replace them.
    code, data, retryable = (_member(error, name) for name in ("code", "data", "retryable"))
    if code is not None and (not isinstance(code, str) or not 0 < len(code) <= MAX_CODE):
        raise BadStatement(f"the code of its error is not a string of 1 to {MAX_CODE} characters")
    if not isinstance(retryable, bool | None):
        raise BadStatement("the retryable of its error is not true, false or None")
    try:
        # Read back, so that nothing the tool keeps can change it.
        plain: JSON = None if data is None else parse(json_bytes(data))
    except (NotJSON, Refused):  # Refused: nested deeper than any message may be
        raise BadStatement("the data of its error is not JSON") from None
    return StatedError(
        _text_of(error)[:MAX_MESSAGE], None if code is None else _plain(code), plain, retryable
    )


def _plain(code: str) -> str:
    """Return a code as a string alone: a member of an enum has a name, too, and would be shown by it."""
    return str.__str__(code)


def _member(error: BaseException, name: str) -> Any:
    try:
        return getattr(error, name, None)
    except Exception:  # noqa: BLE001 - a property of the tool's own class may raise anything
        return None


def _text_of(error: ToolError) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a subclass may raise anything
        return ""
