"""`portbook keys signing`: a key that signs envelopes."""

from __future__ import annotations

import os
from pathlib import Path

import click

from portbook.app.key_files import load_signing_key
from portbook.cli.options import json_option
from portbook.cli.output_and_errors import claim_stdout, print_json, say, stop_with
from portbook.provenance.signing import BadKey, SigningKey

__all__ = ["command"]


@click.command("signing")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default="signing.pem")
@json_option()
def command(path: Path, *, is_json: bool) -> None:
    """Create a key that signs envelopes, or show its public key.

    If PATH (default: signing.pem) does not exist, a new Ed25519 key is written to it, readable by you alone,
    and its public key to PATH.pub, which verifies your envelopes. An existing key is never replaced.
    """
    out = claim_stdout()
    is_new = not path.exists()
    try:
        key = _make(path) if is_new else load_signing_key(path)
    except (OSError, BadKey) as error:
        raise stop_with(error) from None
    if is_new:
        say(f"wrote {path}, which is secret, and {path}.pub, which is public")
    public = key.public.to_pem()
    if is_json or not out.isatty():
        print_json({"key_id": key.key_id, "public_key": public}, out)
    else:
        click.echo(f"{key.key_id}\n{public}", out, nl=False)


def _make(path: Path) -> SigningKey:
    key = SigningKey.generate()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key.to_pem())
    Path(f"{path}.pub").write_text(key.public.to_pem(), "ascii")
    return key
