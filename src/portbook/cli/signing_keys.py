"""`portbook keys signing`: a key that signs envelopes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from portbook.app.rules_from_settings import load_signing_key
from portbook.cli.options import claim_stdout, say, stop_with
from portbook.provenance.signing import BadKey, SigningKey

__all__ = ["command"]


@click.command("signing")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default="signing.pem")
@click.option("--json", "as_json", is_flag=True, help="JSON, even on a terminal.")
def command(path: Path, *, as_json: bool) -> None:
    """Make a key that signs envelopes, or show the public half of one.

    Where PATH (signing.pem without one) is not there, a new Ed25519 key is written to it, readable by you
    alone, and its public half beside it, as PATH.pub: others check your envelopes with that. A key that is
    there is never replaced.
    """
    out = claim_stdout()
    is_new = not path.exists()
    try:
        key = _make(path) if is_new else load_signing_key(path)
    except (OSError, BadKey) as error:
        raise stop_with(error) from None
    if is_new:
        say(f"wrote {path}, which is secret, and {path}.pub, which is not")
    public = key.public.to_pem()
    if as_json or not out.isatty():
        shown = {"key_id": key.key_id, "public_key": public}
        click.echo(json.dumps(shown, separators=(",", ":")), out)
    else:
        click.echo(f"{key.key_id}\n{public}", out, nl=False)


def _make(path: Path) -> SigningKey:
    key = SigningKey.generate()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key.to_pem())
    Path(f"{path}.pub").write_text(key.public.to_pem(), "ascii")
    return key
