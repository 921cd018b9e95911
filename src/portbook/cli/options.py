"""Options that several verbs share, and settings made from them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click

from portbook.schema.store import BrokenSchema
from portbook.settings import BadSettings, Settings, load_settings
from portbook.tools.registry import BadBundle
from portbook.tools.spec import BadTool

__all__ = [
    "START_ERRORS",
    "claim_stdout",
    "common_options",
    "config_option",
    "debug_option",
    "say",
    "settings_from",
    "stop_with",
]

_F = TypeVar("_F", bound=Callable[..., Any])

# What can be wrong with what an operator wrote; each explains itself.
START_ERRORS = (BadSettings, BadTool, BadBundle, BrokenSchema)


def debug_option(function: _F) -> _F:
    """Add the option that shows what tools raise."""
    return click.option(
        "--debug",
        is_flag=True,
        help="Tracebacks of tools on standard error: for development, as they may hold secrets.",
    )(function)


def config_option(function: _F) -> _F:
    """Add the option that names the settings file."""
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Settings file.  [default: portbook.toml, where there is one]",
    )(function)


def common_options(function: _F) -> _F:
    """Add the options of every verb that reads settings."""
    for option in (
        click.option(
            "--deterministic-ids",
            is_flag=True,
            default=None,
            help="Make request, trace and span ids from the content alone.",
        ),
        click.option(
            "--log-dir",
            type=click.Path(path_type=Path, file_okay=False),
            help="Keep records here.  [default: runs]",
        ),
        config_option,
    ):
        function = option(function)
    return function


def settings_from(
    config: Path | None, log_dir: Path | None, deterministic_ids: bool | None, **flags: Any
) -> Settings:
    """Return the settings in force.

    Raises `BadSettings` for what cannot be used.
    """
    given = {"audit.log_dir": log_dir, "ids.deterministic": deterministic_ids, **flags}
    return load_settings(config, os.environ, given, Path.cwd())


def claim_stdout() -> TextIO:
    """Return standard output for our data alone; what tools print goes to standard error from here on."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # Python's answer to a closed descriptor
        say("error: standard output is closed")
        raise click.exceptions.Exit(2)
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    return os.fdopen(ours, "w", encoding="utf-8")


def say(message: str) -> None:
    """Tell the person at the terminal; standard output belongs to data."""
    click.echo(f"portbook: {message}", err=True)


def stop_with(error: Exception) -> click.exceptions.Exit:
    """Say why nothing was started, and return the exit to raise."""
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        say(f"error: {name}{error.strerror or error}")
    else:
        say(f"error: {error}")
    return click.exceptions.Exit(2)
