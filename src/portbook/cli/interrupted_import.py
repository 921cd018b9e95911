"""`ended_by_interrupt`: while modules are imported, Ctrl-C ends the process at once, without a traceback.

An exception in the middle of an import is no way out: a native library that is initialised meanwhile may
crash or panic. Nothing has begun yet that would have to be ended in order.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager

__all__ = ["ended_by_interrupt"]


@contextmanager
def ended_by_interrupt() -> Generator[None]:
    """Leave Ctrl-C to the system meanwhile, as for a program that knows no signals."""
    # Not where it is ignored, as in the background of a script, nor where it is no signal of this thread.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
