"""`portbook store`: migrate, check, copy and restore the store of approvals, keys and sessions."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import click

from portbook.app.store_from_settings import store_of
from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, fail_with, print_data, say, stop_with
from portbook.clock import SystemClock
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.maintenance import problems_of_store, restore_store, store_status
from portbook.stores.store_port import StorePort

__all__ = ["command"]


@click.group("store", cls=CommandGroup)
def command() -> None:
    """Look after the store: a file of SQLite, or a PostgreSQL database."""


@command.command("status")
@json_option()
@config_option
def status(*, is_json: bool, config: Path | None) -> None:
    """Show where the store is, the version of its tables, and how much is in it; it changes nothing.

    The exit code is 1 where the tables are older than this Portbook.
    """
    out = claim_stdout()
    with _store(config) as store:
        found = store_status(store)
    words = [f"{name.ljust(17)}  {_in_words(value)}" for name, value in found.items()]
    print_data(found, words, out, is_json=is_json)
    if not found["is_current"]:
        say("run `portbook store migrate` to make or migrate the tables")
        raise click.exceptions.Exit(ExitCode.FAILURE)


@command.command("migrate")
@json_option()
@config_option
def migrate(*, is_json: bool, config: Path | None) -> None:
    """Make the tables, or migrate them to the version of this Portbook; servers do so too when they start.

    Portbook of the version before goes on working with them.
    """
    out = claim_stdout()
    with _store(config) as store:
        before = store.tables_version()
        store.submit(lambda _: None).result()
        after = store.tables_version()
    words = f"the tables have version {after}" + ("" if before == after else f"; it was {before}")
    print_data({"before": before, "after": after}, [words], out, is_json=is_json)


@command.command("check")
@json_option()
@config_option
def check(*, is_json: bool, config: Path | None) -> None:
    """Check that the store can be read and written, is not damaged, and has the same time as this machine.

    The exit code is 1 where something is wrong.
    """
    out = claim_stdout()
    with _store(config) as store:
        problems = problems_of_store(store, SystemClock())
    if problems:
        raise fail_with(problems)
    print_data({"ok": True, "place": store.place}, ["nothing is wrong with the store"], out, is_json=is_json)


@command.command("copy")
@click.argument("source", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@json_option()
@config_option
def copy(source: Path, *, is_json: bool, config: Path | None) -> None:
    """Copy the store in the file SOURCE into the empty PostgreSQL database that the settings name.

    Approvals and keys stay valid there. What was open in SOURCE expires in the file. Stop the servers first.
    """
    from portbook.stores.maintenance import copy_store
    from portbook.stores.sqlite_store import Store

    out = claim_stdout()
    with _store(config) as target:
        if target.path is not None:
            raise click.UsageError("[store] url in the settings has to name the database to copy into")
        file = Store(source)
        try:
            rows = copy_store(file, target)
        finally:
            file.close()
    words = [f"{name.ljust(17)}  {count}" for name, count in rows.items()]
    print_data({"place": target.place, "rows": rows}, words, out, is_json=is_json)


@command.command("restore")
@json_option()
@config_option
def restore(*, is_json: bool, config: Path | None) -> None:
    """Make a store safe that was restored from a backup, before servers use it again.

    What was redeemed after the backup is not known to be used, so approvals that were open expire. Sessions
    end. Keys that were revoked after the backup have to be revoked again.
    """
    out = claim_stdout()
    with _store(config) as store:
        if not store.tables_version():
            raise fail(f"{store.place}: there is no store to restore; put the backup there first")
        done = restore_store(store, SystemClock().now())
    words = f"expired approvals: {done.expired_approvals}; ended sessions: {done.ended_sessions}"
    print_data(done._asdict(), [words], out, is_json=is_json)
    if done.valid_keys:
        say(f"valid keys: {done.valid_keys} (`portbook keys list`); revoke again what was revoked since")


def _in_words(value: str | int | dict[str, int] | None) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{count} {name}" for name, count in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


@contextmanager
def _store(config: Path | None) -> Generator[StorePort]:
    """Yield the store that the settings name; an unusable one ends the command."""
    try:
        store = store_of(settings_from(config))
        try:
            yield store
        finally:
            store.close()
    except (*START_ERRORS, StoreError) as error:
        raise stop_with(error) from None
