"""How a verb ends that was asked for a verdict and has none: never with a status that would be one."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final, TextIO

import click

from portbook.cli.options import say

__all__ = ["NO_VERDICT", "verdict_or_none"]

# What could not be read, written or understood; 0 and 1 are verdicts.
NO_VERDICT: Final = 2

# As a shell has it for whatever Ctrl-C ended.
_INTERRUPTED: Final = 130

# And for what nobody read to its end, as with `| head`: it was not said, but nothing is wrong either.
_UNREAD: Final = 141


@contextmanager
def verdict_or_none(out: TextIO) -> Generator[None]:
    """Run a verb that writes to `out`; where it gets to no verdict, say why, and exit with another status."""
    if os.environ.get("TERM") == "dumb":
        click.get_current_context().color = False
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(_INTERRUPTED) from None
    except OSError as error:
        with contextlib.suppress(OSError):
            out.close()  # what could not be written would be tried again on the way out
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit(_UNREAD) from None
        say(f"error: {error.strerror or error}")
        raise click.exceptions.Exit(NO_VERDICT) from None
    except Exception:  # noqa: BLE001 - whatever it is, it is no verdict
        traceback.print_exc()
        say("error: this is a defect of portbook; nothing was found out about the files")
        raise click.exceptions.Exit(NO_VERDICT) from None
