"""The command `portbook`, and `python -m portbook`."""

import signal

__all__ = ["main"]


def main() -> None:
    """Run the command line; while it is being imported, Ctrl-C ends the process without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where it is ignored, as in the background of a script
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from portbook.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
