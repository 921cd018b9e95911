"""The descriptors that a watching process gives to the server that it starts."""

from __future__ import annotations

import os
import signal
import threading
from typing import Final, NamedTuple

__all__ = ["TAKE_OVER", "Inherited"]

# Set for the server alone: the descriptors, with commas between them.
TAKE_OVER: Final = "_PORTBOOK_TAKE_OVER"


class Inherited(NamedTuple):
    """A socket that listens already, a pipe to write to once ready, and one that ends with the watcher."""

    listener: int
    pipe: int
    lifeline: int

    @classmethod
    def of_environment(cls) -> Inherited | None:
        """Return the descriptors of this process, or None; what it starts itself does not see them."""
        given = os.environ.pop(TAKE_OVER, None)
        if given is None:
            return None
        inherited = cls(*map(int, given.split(",")))
        for descriptor in inherited:
            os.set_inheritable(descriptor, False)
        return inherited

    def end_with_the_watcher(self) -> None:
        """From now on, whatever this process does, end as after SIGTERM once the watching process is gone."""
        threading.Thread(target=self._wait_for_the_end, name="portbook-lifeline", daemon=True).start()

    def _wait_for_the_end(self) -> None:
        os.read(
            self.lifeline, 1
        )  # nobody writes: it returns when the last descriptor of the other end is closed
        os.kill(os.getpid(), signal.SIGTERM)
