"""`portbook validate`: files against their schemas, with the line and column of every error."""

from __future__ import annotations

import gc
import os
import signal
import stat
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import click

from portbook.assets.json_files import STDIN, walk
from portbook.assets.library import Library, LibrarySchema, load_library
from portbook.assets.library_folder_paths import find_folders
from portbook.assets.schema_files import SchemaFiles, schema_name, version_of
from portbook.assets.validate_file import (
    Checker,
    File,
    Report,
    UnusableFile,
    lines_of,
    misspelt_keywords,
    read_schema,
)
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail_with, say, stop_with, verdict_or_none
from portbook.cli.validate_and_diff_formats import FORMATS, shown, summary, width_of
from portbook.text.did_you_mean import did_you_mean

__all__ = ["command"]

# Below this many files, starting processes takes longer than checking.
_MANY: Final = 500
_AT_ONCE: Final = 64

# Below this many files, no progress bar is needed.
_WAIT: Final = 50

# A file's time and size, which change when it is written.
_Stamps: TypeAlias = "dict[str, tuple[int, int] | None]"

# The width of the line between two rounds.
_LINE: Final = 60

# How long a change may go unnoticed while watching.
_LOOK_S: Final = 0.25


@click.command("validate")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--schema", metavar="SCHEMA", help="Validate every file against this schema: a name or a file.")
@click.option(
    "--schemas",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of schemas.  [default: assets.schemas of the settings]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("--watch", is_flag=True, help="Validate again whenever a file changes, until Ctrl-C.")
@json_option("The same as --format json; errors are JSON, too.")
@config_option
def command(
    paths: tuple[Path, ...],
    *,
    schema: str | None,
    schemas: Path | None,
    form: str,
    watch: bool,
    is_json: bool,
    config: Path | None,
) -> None:
    """Validate JSON files against their schemas.

    PATHS are files, folders of .json files, or - for standard input. A file names its schema in its member
    schema or $schemaRef, or by its file name. A file called NAME.schema.json is checked as a schema, and so
    is a file in the folder of schemas that names none. The exit code is 0 if all files are valid, 1 if one is
    invalid, and 2 if one cannot be checked.
    """
    out = claim_stdout()
    form = "json" if is_json else form
    with verdict_or_none(out):
        try:
            settings = settings_from(config, flags={"assets.schemas": schemas})
            work = _Work(find_folders(settings.asset_schemas, None)[0], schema)
            # Before the first check, so that no change is missed.
            seen = _stamps(work, paths) if watch else {}
            status = _check(work, paths, form, out)
            if watch:
                _watch(seen, work, paths, form, out)
        except START_ERRORS as error:
            raise stop_with(error) from None
        except UnusableFile as unusable:
            if form not in ("text", "json"):
                click.echo(FORMATS[form]([unusable.report]), out, nl=False)
            raise fail_with([shown(line) for line in lines_of(unusable.report)], ExitCode.INVALID) from None
        raise click.exceptions.Exit(status)


@dataclass(frozen=True, slots=True)
class _Work:
    """What a worker process needs to make its checker."""

    schemas: Path | None
    schema: str | None

    def checker(self, *, is_loud: bool = False) -> Checker:
        library = load_library(self.schemas, None)
        if is_loud:
            for warning in library.warnings:
                say(f"warning: {warning}")
        return Checker(
            library, None if self.schema is None else _chosen(library, self.schema, is_loud=is_loud)
        )


def _chosen(library: Library, named: str, *, is_loud: bool) -> LibrarySchema:
    schema = library.schema(named)
    if schema is not None:
        return schema
    path = Path(named)
    left_out = library.folder.left_out.get(named) if library.folder is not None else None
    if left_out is not None and not path.is_file():
        raise click.UsageError(f"--schema: the schema {named!r} cannot be used: {shown(left_out.reason)}")
    if not path.exists() or path.is_dir():
        hint = did_you_mean(named, library.names, "name a schema of the library, or a file")
        raise click.UsageError(f"--schema: there is no schema {named!r}; {shown(hint)}")
    text, document, _, validator = read_schema(SchemaFiles(library.folder), named)
    for doubt in misspelt_keywords(named, text, document) if is_loud else ():
        say(f"warning: {doubt}")
    return LibrarySchema(schema_name(path.name), version_of(document), named, document, validator)


def _check(work: _Work, paths: tuple[Path, ...], form: str, out: Any) -> ExitCode:
    """Check every file once, print the reports, and return the exit code."""
    files = _files(paths)
    checker = work.checker(is_loud=True)
    gc.disable()  # parsed files hold no cycles; looking for some takes a quarter of the time
    reports: list[Report] = []
    try:
        with _progress(len(files)) as advance:
            for report in _reports(work, checker, files):
                reports.append(report)
                advance()
        known = {os.path.realpath(file.path) for file in files}
        reports += [
            checker.check(file)
            for file in checker.schema_files(reports)
            if os.path.realpath(file.path) not in known
        ]
    finally:
        gc.enable()
    click.echo(FORMATS[form](reports), out, nl=False)
    out.flush()
    say(summary(reports))
    if not all(report.is_checked for report in reports):
        return ExitCode.INVALID
    return ExitCode.FAILURE if any(report.problems for report in reports) else ExitCode.SUCCESS


def _files(paths: tuple[Path, ...]) -> list[File]:
    """Return the files to check, in order: those that are named, and those in folders."""
    found: dict[str, File] = {}
    for path in paths:
        named = str(path)
        if not path.is_dir():
            found[named] = File(named)
            continue
        prefix = os.path.join(named, "").removeprefix("./")  # noqa: PTH118 - ends in a slash, once
        below = list(walk(path))
        for name, problem in below:
            found.setdefault(prefix + name, File(prefix + name if name else named, named, problem))
        if not below:
            found[named] = File(named, named, "the folder holds no .json file")
    return list(found.values())


@contextmanager
def _progress(count: int) -> Generator[Callable[[], None]]:
    """Show a progress bar on a terminal, if there are many files."""
    if count < _WAIT or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield lambda: None
        return
    steps = max(count // 200, 1)
    with click.progressbar(
        length=count, label="checking", file=sys.stderr, show_pos=True, update_min_steps=steps
    ) as bar:
        yield lambda: bar.update(1)


# -- many files


_checker: Checker | None = None


def _reports(work: _Work, checker: Checker, files: list[File]) -> Iterator[Report]:
    """Yield the reports in the order of the files; many files are divided among all processors."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if len(files) < _MANY or processors < 2 or not _can_be_shared(work, files):
        yield from map(checker.check, files)
        return
    from concurrent.futures import ProcessPoolExecutor

    with ProcessPoolExecutor(processors, initializer=_prepare, initargs=(work,)) as pool:
        yield from pool.map(_check_one, files, chunksize=_AT_ONCE)


def _can_be_shared(work: _Work, files: list[File]) -> bool:
    """Return whether every process can read its files: a pipe can be read only once."""
    named = [file.path for file in files if file.folder is None]
    return not any(map(_is_pipe, named)) and not (work.schema is not None and _is_pipe(work.schema))


def _is_pipe(path: str) -> bool:
    try:
        return path == STDIN or not stat.S_ISREG(Path(path).stat().st_mode)
    except OSError:
        return False


def _prepare(work: _Work) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is handled by the parent process
    global _checker  # noqa: PLW0603 - one per worker process, made when it starts
    _checker = work.checker()
    gc.disable()


def _check_one(file: File) -> Report:
    assert _checker is not None
    return _checker.check(file)


# -- watching


def _watch(seen: _Stamps, work: _Work, paths: tuple[Path, ...], form: str, out: Any) -> None:
    """Check again whenever a file or a schema has changed."""
    import time

    say("watching; Ctrl-C stops")
    while True:
        time.sleep(_LOOK_S)
        now = _stamps(work, paths)
        if now == seen:
            continue
        changed = sorted(name for name in now.keys() | seen.keys() if now.get(name) != seen.get(name))
        seen = now
        _begin_round(time.strftime("%H:%M:%S"), changed)
        try:
            _check(work, paths, form, out)
        except click.UsageError as error:  # most likely a schema that is being written
            say(f"error: {error.format_message()}")
        except UnusableFile as unusable:
            for line in lines_of(unusable.report):
                say(f"error: {shown(line)}")


def _begin_round(time: str, changed: list[str]) -> None:
    """Draw a line between two rounds: when the next one begins, and because of which file."""
    others = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    heading = f"── {time} {shown(changed[0])}{others} "
    click.echo(heading + "─" * max(_LINE - width_of(heading), 3), err=True)


def _stamps(work: _Work, paths: tuple[Path, ...]) -> _Stamps:
    watched = [file.path for file in _files((*paths, *([work.schemas] if work.schemas is not None else [])))]
    if work.schema is not None and Path(work.schema).is_file():
        beside = Path(work.schema).parent
        watched += [work.schema, *(str(beside / seen.path) for seen in walk(beside, is_deep=False))]
    return {name: _stamp(name) for name in watched}


def _stamp(name: str) -> tuple[int, int] | None:
    try:
        status = Path(name).stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
