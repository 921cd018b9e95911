"""What verbs print, and how they end: data on standard output, messages on standard error."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TextIO

from portbook.cli.exit_codes import ExitCode
from portbook.escaping import escaped, escaped_json, escaped_lines
from portbook.text.did_you_mean import did_you_mean
from portbook.text.late_pattern import late_pattern
from portbook.text.stand_ins import late_module

if TYPE_CHECKING:
    import click
else:
    click = late_module("click")  # a server says what it has to say without it

__all__ = [
    "claim_stdout",
    "end_with",
    "fail",
    "fail_with",
    "print_data",
    "print_json",
    "problem_as_data",
    "problems_of",
    "say",
    "speak_as",
    "stop_with",
    "tell_usage_error",
    "verdict_or_none",
]

_PLACE: Final = late_pattern(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>.+)", re.DOTALL)

# Where a verb leaves its standard output for the errors that are data.
_OUTPUT: Final = "portbook.output"


# What this process calls itself, where several print to one standard error; with a colon after it.
_speaker = ""


def speak_as(name: str) -> None:
    """Begin every message of this process with its name."""
    global _speaker  # noqa: PLW0603 - one name for the process, said before anything else is
    _speaker = f"{name}: "


def say(message: str) -> None:
    """Print a message to standard error; standard output is for data.

    Further lines are indented, so that a name with a line break in it cannot look like a message of its own.
    """
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] # Python's answer to a closed descriptor
        shown = escaped_lines(message).replace("\n", "\n  ")
        sys.stderr.write(f"portbook: {_speaker}{shown}\n")
        sys.stderr.flush()


def end_with(run: Callable[[], object]) -> None:
    """Run a verb and exit; an error of the operating system is one line, and Ctrl-C is none."""
    try:
        code = run()
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            with contextlib.suppress(OSError):
                say(f"error: {error.strerror or error}")
        os._exit(ExitCode.FAILURE)  # a normal exit would try to flush what cannot be written
    except click.exceptions.Exit as ended:
        code = ended.exit_code
    except click.ClickException as error:
        tell_usage_error(error)
        code = error.exit_code
    except click.Abort:
        code = ExitCode.INTERRUPTED
    sys.exit(code)  # pyright: ignore[reportArgumentType] # a verb returns nothing, or its code


def claim_stdout() -> TextIO:
    """Return standard output for our data alone; from here on, what tools print goes to standard error."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison] # Python's answer to a closed descriptor
        say("error: standard output is closed")
        raise click.exceptions.Exit(ExitCode.INVALID)
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    out = os.fdopen(ours, "w", encoding="utf-8")
    if (context := click.get_current_context(silent=True)) is not None:
        context.meta[_OUTPUT] = out
    return out


def print_data(
    data: dict[str, Any], words: list[str], out: TextIO, *, is_json: bool, is_ascii: bool = False
) -> None:
    """Print `words` to a terminal, and `data` to a program or where JSON was asked for."""
    if is_json or not out.isatty():
        print_json(data, out, is_ascii=is_ascii)
    elif words:
        click.echo("\n".join(words), out)


def print_json(data: dict[str, Any], out: TextIO, *, is_ascii: bool = False) -> None:
    """Print `data` on one line, in which a caller's text cannot move the cursor; with `is_ascii` as ASCII."""
    import json  # late: servers print none

    click.echo(escaped_json(json.dumps(data, separators=(",", ":"), ensure_ascii=is_ascii)), out)


def problems_of(error: Exception) -> list[str]:
    """Return the problems that an exception tells of, each as one text."""
    from portbook.settings import BadSettings  # late: it brings the settings along

    if isinstance(error, BadSettings):
        return list(error.problems)
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return [f"{name}{error.strerror or error}"]
    return [str(error)]


def problem_as_data(text: str) -> dict[str, Any]:
    """Return a problem as JSON, with its file, line and column where it begins with them."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return {"file": None, "line": None, "column": None, "message": text}
    line, column = int(found["line"]), int(found["column"])
    return {"file": found["file"], "line": line, "column": column, "message": found["message"]}


def stop_with(error: Exception) -> click.exceptions.Exit:
    """Print why the verb cannot go on, and return the exit to raise."""
    return _ended(problems_of(error), ExitCode.INVALID)


def fail(message: str, code: ExitCode = ExitCode.FAILURE) -> click.exceptions.Exit:
    """Print why the verb failed, and return the exit to raise."""
    return _ended([message], code)


def fail_with(problems: list[str], code: ExitCode = ExitCode.FAILURE) -> click.exceptions.Exit:
    """Print every reason why the verb failed, and return the exit to raise."""
    return _ended(problems, code)


def _ended(problems: list[str], code: ExitCode) -> click.exceptions.Exit:
    """Print the problems: as JSON to standard output where JSON was asked for, else to standard error."""
    context = click.get_current_context(silent=True)
    out = None if context is None or not _wants_json(context) else context.meta.get(_OUTPUT)
    if out is None:
        for problem in problems:
            say(f"error: {problem}")
    else:
        print_json({"error": {"problems": [problem_as_data(each) for each in problems]}}, out, is_ascii=True)
    return click.exceptions.Exit(code)


def _in_one_line(message: str) -> str:
    """Return a message of click on one line, in our words: it lists choices below each other."""
    message = re.sub(r"\s*\n\s*", " ", message.strip())
    return re.sub(r"\. Choose from: ", "; choose one of ", message)


def _unknown_option(error: click.NoSuchOption) -> str:
    """Return the message about an option, with the one that was meant, as far as one is like it."""
    command = None if error.ctx is None else error.ctx.command
    known = [
        name
        for each in (() if command is None else command.params)
        if isinstance(each, click.Option)
        for name in (*each.opts, *each.secondary_opts)
    ]
    is_group = isinstance(command, click.Group)
    hint = did_you_mean(error.option_name, known, "options of a command follow its name" if is_group else "")
    return f"no such option '{error.option_name}'" + (f"; {hint}" if hint else "")


def _wants_json(context: click.Context) -> bool:
    """Return whether the verb, or the group that it belongs to, was asked for JSON."""
    is_wanted = context.params.get("is_json") or context.params.get("form") == "json"
    return bool(is_wanted) or (context.parent is not None and _wants_json(context.parent))


def tell_usage_error(error: click.ClickException) -> None:
    """Print what is wrong with a command line, in the tone of every other error; as JSON where it asks so."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)  # the help itself, whose lines are its form
        return
    # click's own messages quote the arguments as they are, and begin with a capital.
    told = _unknown_option(error) if isinstance(error, click.NoSuchOption) else error.format_message()
    message = _in_one_line(told).rstrip(".")
    message = escaped(message[:1].lower() + message[1:], limit=10 * len(message) + 1)
    context = error.ctx if isinstance(error, click.UsageError) else None
    # Where the verb has claimed standard output, what is printed there would go to standard error.
    out = sys.stdout if context is None else context.meta.get(_OUTPUT, sys.stdout)
    if "--json" in sys.argv[1:] or (context is not None and _wants_json(context)):
        print_json({"error": {"problems": [problem_as_data(message)]}}, out, is_ascii=True)
        return
    say(f"error: {message}")
    if isinstance(error, click.UsageError) and error.ctx is not None and "--help" not in message:
        say(f"see `{error.ctx.command_path} --help`")


@contextmanager
def verdict_or_none(out: TextIO) -> Generator[None]:
    """Run a verb whose exit codes 0 and 1 are verdicts; where it reaches none, print why and exit with 2.

    Raises `Exit` with a code of its own for Ctrl-C and for a closed pipe.
    """
    if os.environ.get("TERM") == "dumb":
        click.get_current_context().color = False
    try:
        yield
    except (click.ClickException, click.exceptions.Exit):
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from None
    except OSError as error:
        with contextlib.suppress(OSError):
            out.close()  # at exit Python would try again to write what could not be written
        if isinstance(error, BrokenPipeError):
            raise click.exceptions.Exit(ExitCode.PIPE_CLOSED) from None
        say(f"error: {error.strerror or error}")
        raise click.exceptions.Exit(ExitCode.INVALID) from None
    except Exception:  # noqa: BLE001 - any exception means that there is no verdict
        import traceback  # late: only where there is a defect

        traceback.print_exc()
        say("error: this is a defect of portbook; the files were not checked")
        raise click.exceptions.Exit(ExitCode.INVALID) from None
