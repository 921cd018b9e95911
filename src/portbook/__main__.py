"""The command `portbook`, and `python -m portbook`."""

from portbook.cli.interrupted_import import Importing

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    with Importing():
        import os
        import sys

        from portbook.cli.plain_serve_line import plain_line, server_of
        from portbook.text.stand_ins import import_click, import_uuid

        line = plain_line(sys.argv[1:], os.environ)
        if line is not None:
            run = server_of(line)
        else:
            import_uuid()  # before click does
            import_click()
            from portbook.cli.main import main as run

    run()


if __name__ == "__main__":
    main()
