"""The command `portbook`, and `python -m portbook`."""

from portbook.cli.interrupted_import import EndedByInterrupt

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    with EndedByInterrupt():
        from portbook.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
