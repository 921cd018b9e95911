"""Options about checkpoints, and the checkpoints that these name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from portbook.app.store_from_settings import store_of
from portbook.audit.checkpoint import CheckpointMark
from portbook.audit.checkpoint_file import BadCheckpointFile, read_checkpoints
from portbook.cli.terminal import stop_with
from portbook.provenance.signing import BadKey, PublicKey
from portbook.settings import Settings
from portbook.stores.checkpoints import CheckpointStore, CoveredRecords

__all__ = ["checkpoint_options", "checkpoints_of", "marks_of", "trusted_keys"]

_F = TypeVar("_F", bound=Callable[..., Any])


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
