"""`portbook wrap`: the output of a program in an envelope."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, TextIO, cast

import click

from portbook.app.key_files import load_signing_key
from portbook.canonical import json_bytes
from portbook.cli.exit_codes import ExitCode, exit_code_of_program
from portbook.cli.output_and_errors import claim_stdout, stop_with
from portbook.clock import SystemClock
from portbook.envelope.errors_and_warnings import EXECUTION_FAILED, Problem
from portbook.envelope.program_output import MAX_OUTPUT_BYTES, TOO_LARGE, Form, Ran, outcome_of
from portbook.envelope.request_for_envelope import Controls, Mode
from portbook.envelope.result_put_into_envelope import enclose, is_envelope
from portbook.escaping import escaped_json
from portbook.model import Occasion
from portbook.provenance.record_inputs_and_outputs import subject_of_program
from portbook.provenance.signing import BadKey

__all__ = ["command"]

# How much of standard error is kept: more than the envelope holds.
_MAX_STDERR: Final = 16 << 10

# What ends this process, and so has to end the program. Ctrl-C reaches both by itself.
_PASSED_ON: Final = frozenset({signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})


@click.command("wrap", context_settings={"allow_interspersed_args": False})
@click.argument("program", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- COMMAND...")
@click.option("--provenance", type=click.Choice(["minimal", "full"]), help="Attach a record of the run.")
@click.option("--digests/--no-digests", default=True, help="Include digests in the record.  [default: yes]")
@click.option(
    "--input", "inputs", multiple=True, metavar="FILE", help="File that the program reads. Repeatable."
)
@click.option(
    "--parent", "parents", multiple=True, metavar="RUN_ID", help="Run that this run builds on. Repeatable."
)
@click.option("--tool", metavar="NAME", help="Tool name in the record.  [default: the program's name]")
@click.option("--tool-version", default="unknown", show_default=True, help="Tool version in the record.")
@click.option(
    "--signing-key", type=click.Path(path_type=Path, dir_okay=False), help="Sign the record with this key."
)
@click.option("--json/--text", "is_json", default=None, help="Format of the output.  [default: detected]")
@click.option(
    "--times", is_flag=True, help="Include start time and duration; then no two envelopes are equal."
)
def command(
    program: tuple[str, ...],
    *,
    provenance: Mode | None,
    digests: bool,
    inputs: tuple[str, ...],
    parents: tuple[str, ...],
    tool: str | None,
    tool_version: str,
    signing_key: Path | None,
    is_json: bool | None,
    times: bool,
) -> None:
    """Run a program and print its output in an envelope.

    A JSON object, array or string is kept as JSON; any other output becomes text. An envelope is printed
    unchanged. A failure becomes an envelope with errors. The exit code is that of the program; 126 or 127 if
    it could not be started, 128 plus the number of the signal if one ended it.
    """
    if signing_key is not None and provenance is None:
        raise click.UsageError("--signing-key signs a record; add --provenance minimal")
    out = claim_stdout()
    try:
        signer = None if signing_key is None else load_signing_key(signing_key)
        subject = subject_of_program(
            [_text(word) for word in program],
            ((_text(path), Path(path).read_bytes()) for path in inputs),
            lambda: Path(found).read_bytes() if (found := shutil.which(program[0])) else None,
            tool=(tool or Path(program[0]).name)[:200] or "unknown",
            version=tool_version,
            is_digested=digests,
            is_full=provenance == "full",
        )
        controls = Controls(
            provenance is not None,
            digests,
            provenance or "minimal",
            parents,
            deterministic=not times,
        )
    except (OSError, BadKey) as error:
        raise stop_with(error) from None
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    clock = SystemClock()
    now, started = clock.now(), clock.tick()
    ran = _run(program)
    occasion = Occasion(None, now, (clock.tick() - started) * 1000)
    form: Form = "auto" if is_json is None else "json" if is_json else "text"
    outcome, warnings = outcome_of(ran, form)
    if is_envelope(outcome):
        out.buffer.write(ran.output)  # byte for byte
    else:
        asked, known = replace(controls, warnings=warnings), replace(subject, occasion=occasion)
        envelope = enclose(outcome, asked, known, signer)
        click.echo(_shown(json_bytes(envelope), out), out)
    out.flush()
    raise click.exceptions.Exit(exit_code_of_program(ran.status))


def _shown(envelope: bytes, out: TextIO) -> str:
    if not out.isatty():
        return envelope.decode()
    return escaped_json(json.dumps(json.loads(envelope), indent=2, ensure_ascii=False))


def _text(word: str) -> str:
    return os.fsencode(word).decode(errors="replace")


def _run(program: tuple[str, ...]) -> Ran:
    # From here on no signal ends this process before the program. Unlike SIG_IGN, handlers are not inherited.
    early: list[int] = []
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _: early.append(number))
    # The terminal sends Ctrl-C to the program too; we wait for it to end.
    signal.signal(signal.SIGINT, lambda number, _: None)
    try:
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - running a program is this verb's task
    except OSError as error:
        message = f"The program could not be started: {error.strerror}."
        problem = Problem(EXECUTION_FAILED, message, {"errno": errno.errorcode.get(error.errno or 0)})
        is_missing = isinstance(error, FileNotFoundError)
        return Ran(ExitCode.NOT_FOUND if is_missing else ExitCode.CANNOT_START, problem=problem)
    # A thread waits for signals: a handler that runs just before the main thread reads would be too early to
    # end that read, and the program would go on.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    threading.Thread(target=_pass_on, args=(process, early), daemon=True).start()
    tail = bytearray()
    listener = threading.Thread(target=_listen, args=(process.stderr, tail), daemon=True)
    listener.start()
    output = cast("BinaryIO", process.stdout).read(MAX_OUTPUT_BYTES + 1)
    problem = None
    if len(output) > MAX_OUTPUT_BYTES:
        process.kill()
        message = f"The program was ended because it printed more than {MAX_OUTPUT_BYTES} bytes."
        problem = Problem(TOO_LARGE, message, {"max_output_bytes": MAX_OUTPUT_BYTES})
    status = process.wait()
    listener.join(1)  # a child that the program left running may hold standard error open for longer
    return Ran(status, output[:MAX_OUTPUT_BYTES], bytes(tail), problem)


def _pass_on(process: subprocess.Popen[bytes], early: list[int]) -> None:
    """Pass signals on to the program, also those that came before it was started."""
    for number in early:
        process.send_signal(number)
    while True:
        process.send_signal(signal.sigwait(_PASSED_ON))


def _listen(source: BinaryIO, tail: bytearray) -> None:
    """Pass the program's standard error on as it is written, and keep the end of it."""
    while chunk := os.read(source.fileno(), 4096):
        sys.stderr.buffer.write(chunk)
        sys.stderr.buffer.flush()
        tail += chunk
        del tail[:-_MAX_STDERR]
