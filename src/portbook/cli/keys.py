"""`portbook keys`: create, list and revoke the keys of callers; make the key that signs envelopes."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import click

from portbook.app.key_files import load_signing_key, make_signing_key
from portbook.app.store_from_settings import store_of
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_json, say, stop_with
from portbook.clock import SystemClock
from portbook.escaping import escaped
from portbook.provenance.signing import BadKey
from portbook.stores.caller_keys import BadKeyRequest, KeptKey, Keys
from portbook.stores.connection_clock_and_errors import StoreError

__all__ = ["command"]


@click.group("keys", cls=CommandGroup)
def command() -> None:
    """Create, list and revoke the keys of callers; running servers apply changes at once."""


@command.command("create")
@click.argument("name")
@click.option(
    "--tool",
    "--tools",
    "tools",
    metavar="PATTERN",
    multiple=True,
    default=("*",),
    help="Tools that the key may call, such as orders.*. Repeatable.  [default: *]",
)
@json_option("Print JSON, with what is stored of the key.")
@config_option
def create(name: str, *, tools: tuple[str, ...], is_json: bool, config: Path | None) -> None:
    """Create a key for the caller NAME and print it, once; only its digest is stored."""
    out = claim_stdout()
    with _keys(config) as keys:
        try:
            made = asyncio.run(keys.create(name, tools))
        except BadKeyRequest as error:
            raise click.UsageError(str(error)) from None
    if is_json:
        print_json({**made.kept._asdict(), "key": made.text}, out, is_ascii=True)
    else:
        click.echo(made.text, out)
    say(f"key {made.kept.id} of {name} may call {', '.join(tools)}; it is not shown again")


@command.command("list")
@json_option()
@config_option
def list_them(*, is_json: bool, config: Path | None) -> None:
    """List the keys in the store, revoked ones too; not those of [[keys.allow]] in the settings file."""
    out = claim_stdout()
    with _keys(config) as keys:
        _print(keys.kept(), out, is_json=is_json)


@command.command("revoke")
@click.argument("key", metavar="ID|NAME")
@json_option()
@config_option
def revoke(key: str, *, is_json: bool, config: Path | None) -> None:
    """Revoke the key with this id, or all keys of the caller with this name. It cannot be undone."""
    out = claim_stdout()
    with _keys(config) as keys:
        revoked = asyncio.run(keys.revoke(key))
    if not revoked:
        raise fail("no active key has this id or name; `portbook keys list` lists the keys")
    _print(revoked, out, is_json=is_json)


@contextmanager
def _keys(config: Path | None) -> Generator[Keys]:
    """Yield the keys of the store that the settings name; an unusable store ends the command."""
    try:
        store = store_of(settings_from(config))
        try:
            yield Keys(store, SystemClock())
        finally:
            store.close()
    except (*START_ERRORS, StoreError) as error:
        raise stop_with(error) from None


def _print(keys: list[KeptKey], out: TextIO, *, is_json: bool) -> None:
    if is_json or not out.isatty():
        print_json({"keys": [key._asdict() for key in keys]}, out, is_ascii=True)
    elif keys:
        width = max(len(key.name) for key in keys)
        for key in keys:
            fate = f"revoked {key.revoked_at}" if key.revoked_at else f"created {key.made_at}"
            name = escaped(key.name, width).ljust(width)
            click.echo(f"{key.id}  {name}  {fate}  {escaped(', '.join(key.tools))}", out)
    else:
        say("there are no keys")


@command.command("signing")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default="signing.pem")
@json_option()
def signing(path: Path, *, is_json: bool) -> None:
    """Create a key that signs envelopes, or show its public key.

    If PATH (default: signing.pem) does not exist, a new Ed25519 key is written to it, readable by you alone,
    and its public key to PATH.pub, which verifies your envelopes. An existing key is never replaced.
    """
    out = claim_stdout()
    is_new = not path.exists()
    try:
        key = make_signing_key(path) if is_new else load_signing_key(path)
    except (OSError, BadKey) as error:
        raise stop_with(error) from None
    if is_new:
        say(f"wrote {path}, which is secret, and {path}.pub, which is public")
    public = key.public.to_pem()
    if is_json or not out.isatty():
        print_json({"key_id": key.key_id, "public_key": public}, out)
    else:
        click.echo(f"{key.key_id}\n{public}", out, nl=False)
