"""`portbook envelope`: verify an envelope."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import CommandGroup
from portbook.cli.options import json_option
from portbook.cli.output_and_errors import claim_stdout, print_data, stop_with
from portbook.envelope.envelope_check import Inspection, inspect_envelope
from portbook.errors import Refused
from portbook.escaping import escaped, escaped_lines
from portbook.model import JSON
from portbook.provenance.signing import BadKey, PublicKey
from portbook.wire.parsing import parse

__all__ = ["command"]


class _BadFile(ValueError):
    """A file that does not hold JSON; the message names it."""


@click.group("envelope", cls=CommandGroup)
def command() -> None:
    """Verify an envelope: schema, digests, anchors and signature."""


@command.command("check")
@click.argument("file")
@click.option(
    "--artifact",
    "artifacts",
    multiple=True,
    metavar="ID=FILE",
    help="Content of an artifact, to verify its digest. Repeatable.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="FILE",
    help="Trusted public key; one of them must have signed. Repeatable.",
)
@json_option()
def check(file: str, *, artifacts: tuple[str, ...], keys: tuple[str, ...], is_json: bool) -> None:
    """Verify an envelope: schema, digests, anchors and signature.

    FILE holds one mcp.envelope.v0.1 as JSON; - reads standard input. The exit code is 0 for a sound envelope,
    1 for one with findings, and 2 for a file that cannot be read or is not JSON.
    """
    out = claim_stdout()
    try:
        envelope = _json(file)
        brought = dict(_artifact(pair) for pair in artifacts)
        trusted = [_key(Path(path)) for path in keys]
    except (OSError, BadKey, _BadFile) as error:
        raise stop_with(error) from None
    inspection = inspect_envelope(envelope, artifacts=brought, keys=trusted)
    print_data(_as_data(inspection), _in_words(inspection), out, is_json=is_json)
    if not inspection.is_sound:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _json(file: str) -> JSON:
    data = cast("BinaryIO", sys.stdin.buffer).read() if file == "-" else Path(file).read_bytes()
    try:
        return parse(data)
    except Refused as refused:
        name = "standard input" if file == "-" else file
        raise _BadFile(f"{name}: {refused.findings[0].message}") from None


def _artifact(pair: str) -> tuple[str, bytes]:
    name, equals, path = pair.partition("=")
    if not equals:
        raise click.UsageError(f"--artifact {pair!r}: write it as ID=FILE")
    return name, Path(path).read_bytes()


def _key(path: Path) -> PublicKey:
    try:
        return PublicKey.from_pem(path.read_text("ascii"))
    except (UnicodeDecodeError, BadKey) as error:
        problem = error if isinstance(error, BadKey) else "not a PEM file"
        raise BadKey(f"{path}: {problem}") from None


def _as_data(inspection: Inspection) -> dict[str, Any]:
    return {
        "sound": inspection.is_sound,
        "findings": [
            {"pointer": finding.pointer, "check": finding.keyword, "message": finding.message}
            for finding in inspection.findings
        ],
        "notes": list(inspection.notes),
    }


def _in_words(inspection: Inspection) -> list[str]:
    if inspection.is_sound:
        return [
            click.style("sound", fg="green", bold=True),
            *(f"  {escaped_lines(note)}" for note in inspection.notes),
        ]
    return [
        click.style("not sound", fg="red", bold=True),
        *(
            f"  {escaped(finding.pointer) or '(root)'}: {escaped_lines(finding.message)}"
            for finding in inspection.findings
        ),
        *(f"  {escaped_lines(note)}" for note in inspection.notes),
    ]
