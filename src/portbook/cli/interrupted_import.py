"""`EndedByInterrupt`: while modules are imported, Ctrl-C ends the process at once, without a traceback.

An exception in the middle of an import is no way out: a native library that is initialised meanwhile may
crash or panic. Nothing has begun yet that would have to be ended in order. Imports as little as possible, as
all of that is imported before it works.
"""

import signal

__all__ = ["EndedByInterrupt"]


class EndedByInterrupt:
    """Leaves Ctrl-C to the system meanwhile, as a program does that knows no signals."""

    __slots__ = ("_is_ours",)

    def __enter__(self) -> None:
        # Not where it is ignored, as in the background of a script.
        self._is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_ours:
            try:
                signal.signal(signal.SIGINT, signal.SIG_DFL)
            except ValueError:  # only the main thread gets signals
                self._is_ours = False

    def __exit__(self, *_: object) -> None:
        if self._is_ours and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # no import has set its own
            signal.signal(signal.SIGINT, signal.default_int_handler)
