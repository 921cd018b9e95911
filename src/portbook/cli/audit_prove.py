"""`portbook audit prove`: shows that a record was covered by a checkpoint, without the rest of the log."""

from __future__ import annotations

from pathlib import Path

import click

from portbook.audit.call_records import records_of_call, request_id_of
from portbook.audit.chain import head_of
from portbook.audit.inclusion_proof import BadProof, InclusionProof, covering, proof_of
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader import Located, lines_of, stream_folder
from portbook.cli.audit_options import audit_options, checkpoints_of, opened_log
from portbook.cli.output_and_errors import claim_stdout, fail, print_json
from portbook.escaping import escaped
from portbook.settings import Settings

__all__ = ["verb"]


@click.command("prove")
@click.argument("identifier", metavar="ID")
@audit_options
def verb(identifier: str, *, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
    """Print a proof that the record of a call is in the log, as JSON.

    ID is the request id of the call, or its number in the newest run. `portbook audit verify-proof` checks
    the proof, without the log. It holds no other record, only hashes of some.
    """
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        request = request_id_of(settings.log_dir, identifier)
        found = records_of_call(settings.log_dir, request)[EXECUTION_STREAM]
        if not found:
            raise fail(f"there is no record of {escaped(identifier)}; `portbook audit tail` shows the newest")
        try:
            proof = _proof(settings, found[-1])
        except BadProof as error:
            raise fail(f"there is no proof of this record: {error}") from None
    print_json(proof.as_data(), out)


def _proof(settings: Settings, located: Located) -> InclusionProof:
    """Return the proof of a record.

    Raises `BadProof` where there is none, `OSError` where a file cannot be read.
    """
    seq = located.record.get("seq")
    if not isinstance(seq, int):
        raise BadProof("it has no number")
    found = covering(checkpoints_of(settings, None), EXECUTION_STREAM, located.file, seq)
    if found is None:
        raise BadProof(
            "no checkpoint covers it yet; one is made every few seconds, and when the process ends"
        )
    covered, segment = found
    path = stream_folder(settings.log_dir, EXECUTION_STREAM) / located.file
    line, hashes = b"", list[bytes]()
    for number, each in enumerate(lines_of(path), 1):
        if segment.first <= number <= segment.last:
            head = head_of(located.file, each)
            if head is None or head.seq != number:
                raise BadProof("the log is broken near it; `portbook audit verify` says where")
            hashes.append(head.hash.encode())
            line = each if number == seq else line
    return proof_of(line, seq, hashes, segment, covered)
