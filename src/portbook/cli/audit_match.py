"""`portbook audit match`: whether given arguments, a result or claims are those of a recorded call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import click

from portbook.app.key_files import load_audit_key
from portbook.audit.call_records import records_of_call, request_id_of
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.keyed_digests import AuditKey, BadAuditKey, KeyedPart
from portbook.canonical import NotJSON, canonical_bytes, json_bytes
from portbook.cli.audit_options import audit_options, opened_log
from portbook.cli.exit_codes import ExitCode
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, stop_with
from portbook.escaping import escaped
from portbook.model import JSONObject

__all__ = ["verb"]

_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command("match")
@click.argument("identifier", metavar="ID")
@click.option("--key", "key_file", metavar="FILE", type=_FILE, help="The audit key.  [default: audit.key]")
@click.option("--arguments", metavar="FILE", type=_FILE, help="The arguments, as JSON.")
@click.option("--result", metavar="FILE", type=_FILE, help="The result, as JSON.")
@click.option("--claims", metavar="FILE", type=_FILE, help="What the caller said of itself, as JSON.")
@audit_options
def verb(
    identifier: str,
    *,
    key_file: Path | None,
    arguments: Path | None,
    result: Path | None,
    claims: Path | None,
    log_dir: Path | None,
    config: Path | None,
    is_json: bool,
) -> None:
    """Tell whether arguments, a result or claims are those of a call; exit with 1 if they are not.

    ID is a request id, or the number of a record in the newest run. The members of arguments and results have
    to be in the order in which they were sent.
    """
    given: dict[KeyedPart, Path | None] = {"arguments": arguments, "result": result, "claims": claims}
    if not any(given.values()):
        raise click.UsageError("give at least one of --arguments, --result and --claims")
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        try:
            key = load_audit_key(key_file or settings.audit_key or Path("audit.key"))
        except BadAuditKey as error:
            raise stop_with(error) from None
        request = request_id_of(settings.log_dir, identifier)
        found = records_of_call(settings.log_dir, request)[EXECUTION_STREAM]
        if not found:
            raise fail(f"there is no record of {escaped(identifier)}; `portbook audit tail` shows the newest")
        digests = _digests(found[-1].record, key)
        matches = {
            part: digests.get(part) == key.digest(part, request.encode(), _bytes_of(part, path))
            for part, path in given.items()
            if path is not None
        }
    words = [f"{part}: {'the same' if is_same else 'different'}" for part, is_same in matches.items()]
    print_data({"request_id": request, "matches": matches}, words, out, is_json=is_json)
    if not all(matches.values()):
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _digests(record: JSONObject, key: AuditKey) -> dict[str, Any]:
    """Return the digests in a record.

    Raises `Exit` where it has none of this key.
    """
    digests = record.get("hmac")
    if not isinstance(digests, dict):
        raise fail("the record has no such digests: no audit key was set when it was written")
    if digests.get("key") != key.key_id:
        raise fail(f"the digests of this record are under the key {escaped(str(digests.get('key')))}")
    return digests


def _bytes_of(part: KeyedPart, path: Path) -> bytes:
    """Return the bytes that were digested.

    Raises `OSError` where the file cannot be read, `Exit` where it is not JSON.
    """
    try:
        value = json.loads(path.read_bytes())
        return canonical_bytes(value) if part == "claims" else json_bytes(value)
    except (NotJSON, ValueError):
        raise fail(f"{escaped(str(path))}: not JSON", ExitCode.INVALID) from None
