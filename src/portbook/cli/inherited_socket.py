"""The descriptors that a watching process gives to the server that it starts."""

from __future__ import annotations

import os
from typing import Final, NamedTuple

__all__ = ["TAKE_OVER", "Inherited"]

# Set for the server alone: both descriptors, with a comma between them.
TAKE_OVER: Final = "_PORTBOOK_TAKE_OVER"


class Inherited(NamedTuple):
    """A socket that listens already, and a pipe to write to once the server is ready."""

    listener: int
    pipe: int

    @classmethod
    def of_environment(cls) -> Inherited | None:
        """Return the descriptors of this process, or None; what it starts itself does not see them."""
        given = os.environ.pop(TAKE_OVER, None)
        if given is None:
            return None
        listener, _, pipe = given.partition(",")
        return cls(int(listener), int(pipe))
