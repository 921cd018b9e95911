"""The known name that is nearest to a misspelt one, as the end of a message. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

__all__ = ["did_you_mean"]


def did_you_mean(name: str, known: Iterable[str] | dict[str, str], otherwise: str = "") -> str:
    """Return `did you mean X?` for the known name nearest to `name`, or `otherwise` where none is near.

    Upper and lower case are alike. A dictionary says how each known name is shown.
    """
    import difflib  # 5 ms, only where there is a mistake to explain

    shown = cast("dict[str, str]", known) if isinstance(known, dict) else {each: each for each in known}
    folded = {each.lower(): text for each, text in shown.items()}
    near = difflib.get_close_matches(name.lower(), folded, n=1)
    return f"did you mean {folded[near[0]]}?" if near else otherwise
