"""Options that the verbs of `portbook audit` share, and the log that these name."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from portbook.app.store_from_settings import store_of
from portbook.audit.checkpoint import BadCheckpointFile, CheckpointMark, CoveredRecords, read_checkpoints
from portbook.audit.checkpoints_made_and_stored import CheckpointStore
from portbook.audit.log_reader import Located, records_in, stream_folder
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, log_dir_option, settings_from
from portbook.cli.output_and_errors import fail, say, stop_with
from portbook.escaping import escaped
from portbook.provenance.signing import BadKey, PublicKey
from portbook.settings import Settings

__all__ = [
    "audit_options",
    "checkpoint_options",
    "checkpoints_of",
    "marks_of",
    "opened_log",
    "records_of",
    "trusted_keys",
]

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


# Options about checkpoints, and the checkpoints that these name.


def checkpoint_options(function: _F) -> _F:
    """Add the options that say which checkpoints to trust."""
    for option in (
        click.option(
            "--public-key",
            "public_keys",
            metavar="FILE",
            multiple=True,
            type=click.Path(path_type=Path, dir_okay=False, exists=True),
            help="Require that the newest checkpoint is signed by this key. Repeatable.",
        ),
        click.option(
            "--checkpoint",
            "marks",
            metavar="NUMBER:HASH",
            multiple=True,
            help="A checkpoint that must still exist: the newest one of an earlier verify. Repeatable.",
        ),
    ):
        function = option(function)
    return function


def marks_of(texts: Iterable[str]) -> list[CheckpointMark]:
    """Return the checkpoints that were noted.

    Raises `UsageError` for what is none.
    """
    marks = [CheckpointMark.read(text) for text in texts]
    found = [mark for mark in marks if mark is not None]
    if len(found) < len(marks):
        raise click.UsageError("--checkpoint must be NUMBER:HASH, as verify prints it")
    return found


def trusted_keys(paths: Iterable[Path]) -> list[str]:
    """Return the ids of public keys in files.

    Raises `Exit` where one cannot be read.
    """
    try:
        return [PublicKey.from_pem(path.read_text("ascii")).key_id for path in paths]
    except (OSError, BadKey, UnicodeDecodeError) as error:
        raise stop_with(
            BadKey("not a PEM file") if isinstance(error, UnicodeDecodeError) else error
        ) from None


def checkpoints_of(settings: Settings, exported: Path | None) -> list[CoveredRecords]:
    """Return the checkpoints in a file, or those of the store.

    Raises `OSError` where they cannot be read, `Exit` where the file has none.
    """
    if exported is None:
        store = store_of(settings)
        try:
            return CheckpointStore(store).covered()
        finally:
            store.close()
    try:
        return read_checkpoints(exported.read_text("utf-8").splitlines())
    except (BadCheckpointFile, UnicodeDecodeError) as error:
        raise stop_with(error) from None
