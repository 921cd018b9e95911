"""The command `portbook`, and `python -m portbook`."""

import signal
import threading

__all__ = ["main"]


def main() -> None:
    """Run the command line; while it is being imported, Ctrl-C ends the process without a traceback."""
    # Not where it is ignored, as in the background of a script, nor where it is no signal of this thread.
    is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    is_ours = is_ours and threading.current_thread() is threading.main_thread()
    if is_ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from portbook.cli.main import main as run

    if is_ours:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
