"""`Importing`: while modules are imported, Ctrl-C ends the process at once, and the collector rests.

It ends without a traceback: an exception in the middle of an import is no way out. A native library that is
initialised meanwhile may crash or panic. Nothing has begun yet that would have to be ended in order.

What an import makes, the process keeps: a collector that looked for cycles in it would find none.
"""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Importing"]

# What `signal` is made of. Nothing is imported from a file before Ctrl-C is taken care of: `signal` itself
# takes longer to import than all that comes before.
_signal: Any = __import__("_signal")


class Importing:
    """Leaves Ctrl-C to the system, as a program does that knows no signals, and stops the collector."""

    __slots__ = ("_is_collecting", "_is_ours")

    def __enter__(self) -> None:
        self._is_collecting = gc.isenabled()
        gc.disable()
        # Not where it is ignored, as in the background of a script.
        self._is_ours = _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler
        if self._is_ours:
            try:
                _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
            except ValueError:  # only the main thread gets signals
                self._is_ours = False

    def __exit__(self, *_: object) -> None:
        gc.freeze()
        if self._is_collecting:
            gc.enable()
        # Unless an import has set its own.
        if self._is_ours and _signal.getsignal(_signal.SIGINT) == _signal.SIG_DFL:
            _signal.signal(_signal.SIGINT, _signal.default_int_handler)
