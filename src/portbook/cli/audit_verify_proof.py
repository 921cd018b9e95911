"""`portbook audit verify-proof`: checks what `portbook audit prove` printed, without the log."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

import click

from portbook.audit.inclusion_proof import BadProof, InclusionProof, check_proof
from portbook.cli.audit_options import checkpoint_options, marks_of, trusted_keys
from portbook.cli.audit_record_in_words import in_a_line
from portbook.cli.options import json_option
from portbook.cli.output_and_errors import claim_stdout, fail, print_data
from portbook.escaping import escaped

__all__ = ["verb"]


@click.command("verify-proof")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
@checkpoint_options
@json_option()
def verb(file: TextIO, *, marks: tuple[str, ...], public_keys: tuple[Path, ...], is_json: bool) -> None:
    """Verify a proof that `portbook audit prove` printed; exit with 1 if it proves nothing.

    FILE is the proof (default: standard input). Without --checkpoint or --public-key, only the consistency of
    the proof is verified: `anchored` is then false, and whoever made the proof vouches for it alone.
    """
    noted, keys = marks_of(marks), trusted_keys(public_keys)
    out = claim_stdout()
    try:
        proven = check_proof(InclusionProof.read(file.read()), noted, keys)
    except (BadProof, UnicodeDecodeError) as error:
        said = error if isinstance(error, BadProof) else "it is not a proof, as `audit prove` prints it"
        raise fail(f"this proves nothing: {said}") from None
    data = {
        "valid": True,
        "anchored": proven.is_anchored,
        "checkpoint": str(proven.checkpoint),
        "at": proven.at,
        "signed_by": proven.signed_by,
        "record": proven.record,
    }
    signed = f", signed by {escaped(proven.signed_by)}" if proven.signed_by else ""
    words = [
        f"valid: in checkpoint {proven.checkpoint} at {escaped(proven.at)}{signed}",
        *([] if proven.is_anchored else ["not anchored: compare that checkpoint with one that you noted"]),
        in_a_line(proven.record),
    ]
    print_data(data, words, out, is_json=is_json)
