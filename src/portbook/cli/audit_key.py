"""`portbook audit key`: the key for digests of what could be guessed."""

from __future__ import annotations

import os
from pathlib import Path

import click

from portbook.app.key_files import load_audit_key
from portbook.audit.keyed_digests import KEY_BYTES, AuditKey, BadAuditKey
from portbook.cli.options import json_option
from portbook.cli.output_and_errors import claim_stdout, print_data, say, stop_with

__all__ = ["verb"]


@click.command("key")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default="audit.key")
@json_option()
def verb(path: Path, *, is_json: bool) -> None:
    """Create an audit key, or show the id of one.

    If PATH (default: audit.key) does not exist, a new key is written to it, readable by you alone. Name it in
    `[audit] key`, and give a copy to your auditor: who has it can compare arguments, results and claims with
    their digests in the records. An existing key is never replaced.
    """
    out = claim_stdout()
    is_new = not path.exists()
    try:
        key = _make_audit_key(path) if is_new else load_audit_key(path)
    except (OSError, BadAuditKey) as error:
        raise stop_with(error) from None
    if is_new:
        say(f"wrote {path}, which is secret")
    print_data({"key_id": key.key_id}, [key.key_id], out, is_json=is_json)


def _make_audit_key(path: Path) -> AuditKey:
    """Write a new key to a file that only its owner can read, and return it.

    Raises `OSError` where there is such a file, or it cannot be written.
    """
    key = AuditKey(os.urandom(KEY_BYTES))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key.to_text())
    return key
