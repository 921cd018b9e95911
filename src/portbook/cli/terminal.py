"""What verbs print, and how they end: data on standard output, messages on standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, TextIO

import click

from portbook.cli.exit_codes import ExitCode
from portbook.escaping import escaped_json, escaped_lines
from portbook.settings.bad_settings import BadSettings

__all__ = ["claim_stdout", "print_data", "print_json", "problems_of", "say", "stop_with", "verdict_or_none"]


def say(message: str) -> None:
    """Print a message to standard error; standard output is for data.

    Further lines are indented, so that a name with a line break in it cannot look like a message of its own.
    """
    click.echo("portbook: " + escaped_lines(message).replace("\n", "\n  "), err=True)


def claim_stdout() -> TextIO:
    """Return standard output for our data alone; from here on, what tools print goes to standard error."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # Python's answer to a closed descriptor
        say("error: standard output is closed")
        raise click.exceptions.Exit(ExitCode.INVALID)
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "w", encoding="utf-8")


def print_data(
    data: dict[str, Any], words: list[str], out: TextIO, *, is_json: bool, is_ascii: bool = False
) -> None:
    """Print `words` to a terminal, and `data` to a program or where JSON was asked for."""
    if is_json or not out.isatty():
        print_json(data, out, is_ascii=is_ascii)
    elif words:
        click.echo("\n".join(words), out)


def print_json(data: dict[str, Any], out: TextIO, *, is_ascii: bool = False) -> None:
    """Print `data` on one line, in which a caller's text cannot move the cursor; with `is_ascii` as ASCII."""
    click.echo(escaped_json(json.dumps(data, separators=(",", ":"), ensure_ascii=is_ascii)), out)


def problems_of(error: Exception) -> list[str]:
    """Return the problems that an exception tells of, each as one text."""
    if isinstance(error, BadSettings):
        return list(error.problems)
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return [f"{name}{error.strerror or error}"]
    return [str(error)]


def stop_with(error: Exception) -> click.exceptions.Exit:
    """Print why the verb cannot go on, and return the exit to raise."""
    for problem in problems_of(error):
        say(f"error: {problem}")
    return click.exceptions.Exit(ExitCode.INVALID)


@contextmanager
def verdict_or_none(out: TextIO) -> Generator[None]:
    """Run a verb whose exit codes 0 and 1 are verdicts; where it reaches none, print why and exit with 2.

    Raises `Exit` with a code of its own for Ctrl-C and for a closed pipe.
    """
    if os.environ.get("TERM") == "dumb":
        click.get_current_context().color = False
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    except OSError as error:
        with contextlib.suppress(OSError):
            out.close()  # at exit Python would try again to write what could not be written
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit(ExitCode.PIPE_CLOSED) from None
        say(f"error: {error.strerror or error}")
        raise click.exceptions.Exit(ExitCode.INVALID) from None
    except Exception:  # noqa: BLE001 - any exception means that there is no verdict
        traceback.print_exc()
        say("error: this is a defect of portbook; the files were not checked")
        raise click.exceptions.Exit(ExitCode.INVALID) from None
