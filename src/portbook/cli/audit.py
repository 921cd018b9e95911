"""`portbook audit`: verify and prove the execution log, match digests; the other verbs are added here."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import click

from portbook.app.key_files import load_audit_key, make_audit_key
from portbook.app.store_from_settings import store_of
from portbook.audit.call_records import records_of_call, request_id_of
from portbook.audit.chain import Head, head_of
from portbook.audit.chain_verification import ChainVerdict
from portbook.audit.checkpoint_and_hash_tree import (
    BadCheckpointFile,
    CheckpointBody,
    CheckpointMark,
    CoveredRecords,
    as_line,
    read_checkpoints,
)
from portbook.audit.checkpoint_and_log_verification import (
    CHAINED_STREAMS,
    CheckpointVerdict,
    CoveredLog,
    lost_calls,
    proof_data,
    verified_streams,
    verify_checkpoints,
    written_files,
)
from portbook.audit.checkpoints_made_and_stored import CheckpointStore, log_name
from portbook.audit.inclusion_proof import BadProof, InclusionProof, check_proof, covering, proof_of
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.keyed_digests import BadAuditKey, KeyedPart, NoDigests, digested_bytes
from portbook.audit.log_reader_and_follower import Located, lines_of, stream_folder
from portbook.canonical import NotJSON
from portbook.cli.audit_export_show_tail import audit_options, export, in_a_line, opened_log, show, tail
from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, print_json, say, stop_with
from portbook.escaping import escaped
from portbook.provenance.signing import BadKey, PublicKey
from portbook.settings import Settings

__all__ = ["command"]


@click.group("audit", cls=CommandGroup)
def command() -> None:
    """Verify, prove, follow, show and export the execution log."""


for _verb in (tail, show, export):
    command.add_command(_verb)


# Options about checkpoints, and the checkpoints that these name.

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


# `portbook audit verify`: whether a record was changed, removed or added after it was written.

_UNKNOWN: Final = "unknown, check what it did before you repeat it"


@command.command("verify")
@click.option(
    "--head",
    "noted",
    metavar="STREAM/FILE#SEQ:HASH",
    multiple=True,
    help="A record that must still exist: the newest one of an earlier verify. Repeatable.",
)
@click.option(
    "--checkpoints",
    "exported",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="What `audit checkpoints` printed, for files of one or several machines.  [default: the store's]",
)
@checkpoint_options
@audit_options
def verify(
    noted: tuple[str, ...],
    *,
    exported: Path | None,
    marks: tuple[str, ...],
    public_keys: tuple[Path, ...],
    log_dir: Path | None,
    config: Path | None,
    is_json: bool,
) -> None:
    """Verify that no record was changed, removed or added since it was written; exit with 1 if one was.

    Checkpoints show whether records were cut off at the end, and whether a file was removed. A call whose
    process died has only an intent on record; it is listed as unknown.
    """
    heads, known, keys = [_noted(text) for text in noted], marks_of(marks), trusted_keys(public_keys)
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        covered = checkpoints_of(settings, exported)  # before the records, which grow meanwhile
        checked = verify_checkpoints(covered, known, keys)
        name = log_name(settings.log_dir, spans_machines=settings.store_url is not None)
        log = CoveredLog(covered, None if exported else name, written_files(settings.log_dir))
        verdicts = verified_streams(settings.log_dir, settings.keep_runs, heads, log)
        lost = lost_calls(settings.log_dir)
    uncovered = log.uncovered_in(verdicts)
    data = proof_data(verdicts, lost, checked, uncovered)
    words = [_chain_in_words(stream, verdict) for stream, verdict in verdicts.items()]
    words.append(_checkpoints_in_words(checked, uncovered))
    words += [f"{_UNKNOWN}: {in_a_line(located.record)}" for located in lost]
    print_data(data, words, out, is_json=is_json)
    if not data["whole"]:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _noted(text: str) -> tuple[str, Head]:
    stream, _, rest = text.partition("/")
    head = Head.read(rest)
    if head is None or stream not in CHAINED_STREAMS:
        raise click.UsageError("--head must be STREAM/FILE#SEQ:HASH, as verify prints it")
    return stream, head


def _chain_in_words(stream: str, verdict: ChainVerdict) -> str:
    if broken := verdict.broken:
        number = "a line" if broken.seq is None else f"record {broken.seq}"
        where = f"{escaped(broken.file)}:{broken.line}"
        return f"{stream}: broken: {where}: {number} {escaped(broken.sentence, 512)} ({broken.problem})"
    counts = f"{_count(verdict.records, 'record')} in {_count(verdict.files, 'file')}"
    pruned = "; older files were pruned" if verdict.is_pruned else ""
    cut = f"; {_count(len(verdict.cut), 'file')} cut by a kill" if verdict.cut else ""
    head = f"; newest {stream}/{escaped(str(verdict.head), 512)}" if verdict.head else ""
    return f"{stream}: whole: {counts}{pruned}{cut}{head}"


def _checkpoints_in_words(verdict: CheckpointVerdict, uncovered: int) -> str:
    if broken := verdict.broken:
        return f"checkpoints: broken: checkpoint {broken.number} {broken.sentence} ({broken.problem})"
    if verdict.newest is None:
        return "checkpoints: none; nothing but the chain vouches for the newest records"
    signed = f"; signed by {escaped(verdict.signed_by)}" if verdict.signed_by else ""
    rest = f"; {_count(uncovered, 'record')} not covered" if uncovered else ""
    return f"checkpoints: whole: newest {verdict.newest} at {verdict.at}{signed}{rest}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"


# `portbook audit checkpoints`: the checkpoints of the store, for an auditor who gets files alone.


@command.command("checkpoints")
@config_option
@json_option()
def checkpoints(*, config: Path | None, is_json: bool) -> None:
    """Print every checkpoint with what it covers, oldest first.

    `portbook audit verify --checkpoints FILE` verifies collected records against it.
    """
    out = claim_stdout()
    try:
        for covered in checkpoints_of(settings_from(config), None):
            print_data(as_line(covered), [_checkpoint_in_words(covered)], out, is_json=is_json)
    except BrokenPipeError:  # the reader of our output has closed it
        raise
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None


def _checkpoint_in_words(covered: CoveredRecords) -> str:
    row, segments = covered.checkpoint, covered.segments
    body = CheckpointBody.read(row)
    records = sum(each.last - each.first + 1 for each in segments)
    at = "altered" if body is None else escaped(body.at)
    signed = "signed" if row.signature else "not signed"
    return f"{row.number}:{escaped(row.hash)}  {at}  {records} records in {len(segments)} files  {signed}"


# `portbook audit prove`: shows that a record was covered by a checkpoint, without the rest of the log.


@command.command("prove")
@click.argument("identifier", metavar="ID")
@audit_options
def prove(identifier: str, *, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
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
            proof = _made_proof(settings, found[-1])
        except BadProof as error:
            raise fail(f"there is no proof of this record: {error}") from None
    print_json(proof.as_data(), out)


def _made_proof(settings: Settings, located: Located) -> InclusionProof:
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


# `portbook audit verify-proof`: checks what `portbook audit prove` printed, without the log.


@command.command("verify-proof")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
@checkpoint_options
@json_option()
def verify_proof(
    file: TextIO, *, marks: tuple[str, ...], public_keys: tuple[Path, ...], is_json: bool
) -> None:
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


# `portbook audit match`: whether given arguments, a result or claims are those of a recorded call.

_FILE: Final = click.Path(path_type=Path, dir_okay=False, exists=True)


@command.command("match")
@click.argument("identifier", metavar="ID")
@click.option("--key", "key_file", metavar="FILE", type=_FILE, help="The audit key.  [default: audit.key]")
@click.option("--arguments", metavar="FILE", type=_FILE, help="The arguments, as JSON.")
@click.option("--result", metavar="FILE", type=_FILE, help="The result, as JSON.")
@click.option("--claims", metavar="FILE", type=_FILE, help="What the caller said of itself, as JSON.")
@audit_options
def match(
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
        try:
            digests = key.digests_in(found[-1].record)
        except NoDigests as error:
            raise fail(str(error)) from None
        matches = {
            part: key.matches(digests, part, request, _bytes_of(part, path))
            for part, path in given.items()
            if path is not None
        }
    words = [f"{part}: {'the same' if is_same else 'different'}" for part, is_same in matches.items()]
    print_data({"request_id": request, "matches": matches}, words, out, is_json=is_json)
    if not all(matches.values()):
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _bytes_of(part: KeyedPart, path: Path) -> bytes:
    """Return the bytes that were digested.

    Raises `OSError` where the file cannot be read, `Exit` where it is not JSON.
    """
    try:
        return digested_bytes(part, json.loads(path.read_bytes()))
    except (NotJSON, ValueError):
        raise fail(f"{escaped(str(path))}: not JSON", ExitCode.INVALID) from None


# `portbook audit key`: the key for digests of what could be guessed.


@command.command("key")
@click.argument("path", type=click.Path(path_type=Path, dir_okay=False), default="audit.key")
@json_option()
def key(path: Path, *, is_json: bool) -> None:
    """Create an audit key, or show the id of one.

    If PATH (default: audit.key) does not exist, a new key is written to it, readable by you alone. Name it in
    `[audit] key`, and give a copy to your auditor: who has it can compare arguments, results and claims with
    their digests in the records. An existing key is never replaced.
    """
    out = claim_stdout()
    is_new = not path.exists()
    try:
        key = make_audit_key(path) if is_new else load_audit_key(path)
    except (OSError, BadAuditKey) as error:
        raise stop_with(error) from None
    if is_new:
        say(f"wrote {path}, which is secret")
    print_data({"key_id": key.key_id}, [key.key_id], out, is_json=is_json)
