"""The known name that is nearest to a misspelt one, as the end of a message. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

__all__ = ["did_you_mean"]

# So many letters of a name tell which one is meant.
_ENOUGH: Final = 2


def did_you_mean(name: str, known: Iterable[str] | dict[str, str], otherwise: str = "") -> str:
    """Return `did you mean X?` for the known name nearest to `name`, or `otherwise` where none is near.

    The nearest is one that begins with `name`, else one that is spelled like it. Upper and lower case are
    alike. A dictionary says how each known name is shown.
    """
    import difflib  # 5 ms, only where there is a mistake to explain

    shown = cast("dict[str, str]", known) if isinstance(known, dict) else {each: each for each in known}
    folded = {each.lower(): text for each, text in shown.items()}
    begun = [each for each in folded if len(name.strip("-")) >= _ENOUGH and each.startswith(name.lower())]
    near = sorted(begun, key=len) or difflib.get_close_matches(name.lower(), folded, n=1)
    return f"did you mean {folded[near[0]]}?" if near else otherwise
