"""Options that the verbs of `portbook audit` share, and the log that these name."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from portbook.audit.log_reader import Located, records_in, stream_folder
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, log_dir_option, settings_from
from portbook.cli.terminal import fail, say, stop_with
from portbook.escaping import escaped
from portbook.settings import Settings

__all__ = ["audit_options", "opened_log", "records_of"]

_F = TypeVar("_F", bound=Callable[..., Any])


def audit_options(function: _F) -> _F:
    """Add the options of every verb that reads the log."""
    for option in (
        json_option(),
        config_option,
        log_dir_option("Folder of the records.  [default: runs]"),
    ):
        function = option(function)
    return function


@contextmanager
def opened_log(config: Path | None, log_dir: Path | None) -> Generator[Settings]:
    """Yield the settings in force; a log that cannot be read ends the verb with a message.

    Raises `Exit` where the settings cannot be used, or the log is missing or cannot be read.
    """
    try:
        settings = settings_from(config, log_dir)
        if not settings.log_dir.is_dir():
            said = f"{settings.log_dir}: no such folder; name the folder of the records with --log-dir"
            raise fail(said, ExitCode.INVALID)
        yield settings
    except BrokenPipeError:  # the reader of our output has closed it
        raise
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None


def records_of(log_dir: Path, stream: str) -> Iterator[Located]:
    """Yield a stream's records, with a warning for each line that is not a record.

    Raises `OSError` where a file cannot be read.
    """

    def warn(file: str, line: int) -> None:
        say(f"warning: {escaped(file)}:{line}: not a record; skipped")

    return records_in(stream_folder(log_dir, stream), warn)
