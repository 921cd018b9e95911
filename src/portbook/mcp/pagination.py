"""Pages of a list, and their cursors. Pure: no I/O."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSONObject

__all__ = ["PAGE_SIZE", "page_of"]

PAGE_SIZE: Final = 100


def page_of(items: list[tuple[str, JSONObject]], cursor: str | None) -> tuple[list[JSONObject], str | None]:
    """Return the page at `cursor`, the first without one, and the cursor of the next page.

    Raises `Refused` for a cursor that is not of this list.
    """
    start = 0
    if cursor is not None:
        names = [name for name, _ in items]
        last = _decoded(cursor)
        if last not in names:
            finding = Finding(
                "/params/cursor", "not a cursor of this list; start again without one", "cursor", ""
            )
            raise Refused(Reason.BAD_PARAMS, (finding,))
        start = names.index(last) + 1
    page = items[start : start + PAGE_SIZE]
    has_more = start + PAGE_SIZE < len(items)
    return [described for _, described in page], _encoded(page[-1][0]) if has_more else None


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{name}".encode()).decode()


def _decoded(cursor: str) -> str | None:
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return text.removeprefix("after:") if text.startswith("after:") else None
