"""`portbook pin`: approves the definitions of MCP servers as they are now, or checks that they are.

Also what `portbook review` begins with: the servers with what is approved of them, and graded differences.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.app.pin_review import Offers, PinReview
from portbook.app.servers_asked_once import ask_servers, declared_servers
from portbook.app.store_from_settings import store_of
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, say, stop_with, verdict_or_none
from portbook.clock import SystemClock
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, JSONObject
from portbook.pins.approved_definitions_in_lock import PinLock, approve
from portbook.pins.difference import PartChange
from portbook.pins.on_change import Grade, Reaction
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.served_or_withheld import PinVerdict, PinVerdicts, Standing
from portbook.scan.scanned_text_and_finding import Tier
from portbook.settings import Settings
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.lock_file import LOCK_NAME
from portbook.stores.store_port import StorePort
from portbook.stores.upstream_status_and_offers import ObservationStore
from portbook.text.did_you_mean import did_you_mean
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.trust_by_lock import pinned_part

__all__ = [
    "PinnedServers",
    "approved_words",
    "command",
    "differing",
    "finding_lines",
    "instance_lines",
    "open_servers",
    "opened_store",
    "report_data",
    "report_words",
    "title_of",
]


@dataclass(frozen=True, slots=True)
class _Compared:
    """One server: what it offers now, and how that differs from what is approved."""

    observed: ServerDefinitions | None
    """None where it could not be asked."""
    verdicts: list[PinVerdict]
    problem: str | None = None

    @property
    def has_attack(self) -> bool:
        """Return whether the scan found an attack in what is not approved."""
        return any(each.is_quarantined for each in self.verdicts)


@click.command("pin")
@click.argument("names", metavar="[ALIAS]...", nargs=-1)
@click.option("--check", is_flag=True, help=f"Write nothing; exit with 1 if {LOCK_NAME} differs.")
@click.option("--force", is_flag=True, help="Also approve definitions in which the scan finds an attack.")
@json_option()
@config_option
def command(names: tuple[str, ...], *, check: bool, force: bool, is_json: bool, config: Path | None) -> None:
    """Approve the definitions of MCP servers as they are now.

    Asks every server of the settings, or those named, what it offers, and writes it to portbook.lock beside
    the settings file: tools, prompts and instructions, part by part. What differs from what was approved
    before is printed, with its grade. A server that cannot be asked keeps what it has there, and the exit
    code is 1. So it is for a definition in which the scan finds an attack: it is not approved without
    --force.

    With --check nothing is written. The exit code is 0 if the lock has what the servers offer, 1 if it
    differs, and 2 if a server could not be asked. Without a terminal, the difference is on standard output as
    JSON, and on standard error in words.
    """
    out = claim_stdout()
    with verdict_or_none(out):
        try:
            servers = open_servers(config, names)
            offers = servers.ask()
            review = servers.review(offers)
            compared = {alias: _compare(review, alias) for alias in offers}
            gone = [] if names else sorted(servers.pins.servers.keys() - servers.declared.keys())
            is_written = not check and _write(servers, compared, gone, is_forced=force)
        except (*START_ERRORS, StoreError) as error:
            raise stop_with(error) from None
        words = _words(compared, gone, is_check=check, is_forced=force)
        _print(compared, gone, words, out, is_json=is_json, is_written=is_written)
        if check and not is_json and not out.isatty():
            for line in words:
                say(click.unstyle(line))
        if not check and not force and any(each.has_attack for each in compared.values()):
            say("definitions with hard findings are not approved; read them, or approve them with --force")
            raise click.exceptions.Exit(ExitCode.FAILURE)
        raise click.exceptions.Exit(_exit_code(compared, gone, is_check=check))


def _words(
    compared: Mapping[str, _Compared], gone: list[str], *, is_check: bool, is_forced: bool
) -> list[str]:
    told = report_words if is_check else partial(approved_words, is_forced=is_forced)
    words = [line for alias, each in compared.items() for line in told(alias, each.verdicts, each.problem)]
    return [*words, *(f"{alias}: no longer in the settings" for alias in gone)]


def _print(
    compared: Mapping[str, _Compared],
    gone: list[str],
    words: list[str],
    out: TextIO,
    *,
    is_json: bool,
    is_written: bool,
) -> None:
    data: dict[str, Any] = {
        "servers": [report_data(alias, each.verdicts, each.problem) for alias, each in compared.items()],
        "gone": gone,
        "written": is_written,
    }
    print_data(data, words, out, is_json=is_json)


def _compare(review: PinReview, alias: str) -> _Compared:
    offer = review.offers[alias]
    if isinstance(offer, str):
        return _Compared(None, [], offer)
    return _Compared(offer, differing(review.judge(alias)))


def _write(
    servers: PinnedServers, compared: Mapping[str, _Compared], gone: list[str], *, is_forced: bool
) -> bool:
    """Write what is approved to the lock; return whether there was anything to write."""
    changed: dict[str, ServerDefinitions | None] = dict.fromkeys(gone)
    for alias, each in compared.items():
        if each.observed is not None:
            before = servers.pins.servers.get(alias) or ServerDefinitions()
            changed[alias] = each.observed if is_forced else _approvable(each.observed, each.verdicts, before)
    if changed:
        approve(servers.folder, changed)
    if not compared:
        say("there are no MCP servers in the settings; add one as [mcp.ALIAS]")
    return bool(changed)


def _approvable(
    observed: ServerDefinitions, verdicts: list[PinVerdict], before: ServerDefinitions
) -> ServerDefinitions:
    """Return what is observed, but what was approved before of a definition that looks like an attack."""
    for verdict in verdicts:
        if verdict.is_quarantined:
            key = (verdict.difference.kind, verdict.difference.name)
            observed = observed.merged(*key, before.of(*key))
    return observed


def _exit_code(compared: Mapping[str, _Compared], gone: list[str], *, is_check: bool) -> ExitCode:
    if any(each.problem for each in compared.values()):
        return ExitCode.INVALID if is_check else ExitCode.FAILURE
    is_different = bool(gone) or any(each.verdicts for each in compared.values())
    return ExitCode.FAILURE if is_check and is_different else ExitCode.SUCCESS


# The MCP servers of the settings with what is approved of them, for `portbook pin` and `portbook review`.


@dataclass(frozen=True, slots=True)
class PinnedServers:
    """The servers that a command is about."""

    settings: Settings
    declared: Mapping[str, DeclaredUpstream]
    """All servers of the settings."""
    names: tuple[str, ...]
    """Those that the command is about."""

    @property
    def folder(self) -> Path:
        """Return the folder of the lock."""
        return self.settings.folder

    @property
    def pins(self) -> PinLock:
        """Return what is approved now. Raises `BadLock` where the lock cannot be read."""
        return PinLock.read(self.folder)

    def review(self, offers: Offers) -> PinReview:
        """Return these offers beside what is approved now. Raises `BadLock` where the lock cannot be read."""
        return PinReview.of(self.folder, self.declared, offers)

    def ask(self, *names: str) -> dict[str, ServerDefinitions | str]:
        """Return what each server offers now, or why it could not be asked."""
        wanted = [self.declared[name] for name in names or self.names]
        answers = asyncio.run(ask_servers(self.settings, wanted, os.environ))
        for alias, offer in answers.items():
            for sentence in () if isinstance(offer, str) else offer.left_out:
                say(f"mcp.{alias}: {sentence}")
        # Where there is no file yet, nobody has seen anything older.
        if self.settings.store_url is not None or self.settings.store_path.exists():
            self._remember([offer for offer in answers.values() if isinstance(offer, Offer)])
        return {alias: self._pinned(alias, offer) for alias, offer in answers.items()}

    def _remember(self, offers: Iterable[Offer]) -> None:
        with opened_store(self.settings) as store:
            observations = ObservationStore(store, SystemClock())
            for offer in offers:
                observations.remember(offer.server, offer.as_data()).result()

    def _pinned(self, alias: str, offer: Offer | str) -> ServerDefinitions | str:
        return offer if isinstance(offer, str) else pinned_part(self.declared[alias], offer)


@contextmanager
def opened_store(settings: Settings) -> Generator[StorePort]:
    """Yield the store that the settings name, and close it."""
    store = store_of(settings)
    try:
        yield store
    finally:
        store.close()


def open_servers(config: Path | None, names: tuple[str, ...]) -> PinnedServers:
    """Return the servers of the settings; all of them, or those named.

    Raises `BadSettings` and `BadLock` for what cannot be used, `Exit` for a name that the settings lack.
    """
    settings = settings_from(config)
    declared = {each.alias: each for each in declared_servers(settings)}
    for name in names:
        if name not in declared:
            hint = did_you_mean(
                name, sorted(declared), f"the settings have {', '.join(sorted(declared)) or 'none'}"
            )
            raise fail(f"there is no MCP server {name!r} in the settings; {hint}")
    servers = PinnedServers(settings, declared, names or tuple(sorted(declared)))
    _ = servers.pins  # a lock that cannot be read is told before a server is started
    return servers


# Graded differences of definitions as words and as data, for `portbook pin` and `portbook review`.

_COLOURS: Final = {Reaction.ACCEPT: "green", Reaction.ASK: "yellow", Reaction.BLOCK: "red"}

# What each reaction means for a definition that differs.
_MEANING: Final = {
    Reaction.ACCEPT: "served, as on_change accepts it",
    Reaction.ASK: "withheld until it is reviewed",
    Reaction.BLOCK: "withheld, and a review needs --force",
}


def differing(verdicts: PinVerdicts) -> list[PinVerdict]:
    """Return the verdicts on definitions that are not as approved."""
    return [each for each in verdicts.values() if each.standing is not Standing.APPROVED]


def report_data(alias: str, verdicts: Iterable[PinVerdict], problem: str | None = None) -> JSONObject:
    """Return what is to be said about one server, as JSON."""
    changes: list[JSON] = [each.as_data() for each in verdicts]
    return {"name": alias, "definitions": changes, "problem": problem}


def report_words(alias: str, verdicts: Iterable[PinVerdict], problem: str | None = None) -> Iterator[str]:
    """Yield what is to be said about one server, in lines."""
    if problem is not None:
        yield _not_asked(alias, problem)
        return
    lines = [line for verdict in verdicts for line in (title_of(verdict), *_why(verdict))]
    yield f"{alias}: {'as approved' if not lines else 'not as approved'}"
    yield from (f"  {line}" for line in lines)


def approved_words(
    alias: str, verdicts: Iterable[PinVerdict], problem: str | None = None, *, is_forced: bool
) -> Iterator[str]:
    """Yield what became of the definitions of one server that was pinned, in lines."""
    if problem is not None:
        yield _not_asked(alias, problem)
        return
    lines = [line for verdict in verdicts for line in _approved(verdict, is_forced=is_forced)]
    yield f"{alias}: {'approved before, nothing has changed' if not lines else 'approved as it is now'}"
    yield from (f"  {line}" for line in lines)


def _approved(verdict: PinVerdict, *, is_forced: bool) -> Iterator[str]:
    if verdict.is_quarantined and not is_forced:
        word = click.style("not approved", fg="red", bold=True)
        yield f"{_name_of(verdict)}: {word}: read it, or use --force"
        yield from _why(verdict)
        return
    grades = verdict.difference.grades
    word = next((each.value for each in (Grade.ADDED, Grade.REMOVED) if each in grades), "changed")
    yield f"{_name_of(verdict)}: {word}"
    if word == "changed":
        yield from _why(verdict)


def _not_asked(alias: str, problem: str) -> str:
    return f"{alias}: {click.style('not asked', fg='red')}: {escaped(problem)}"


def _name_of(verdict: PinVerdict) -> str:
    difference = verdict.difference
    is_server = difference.kind == "server"
    return escaped("instructions of the server" if is_server else f"{difference.kind} {difference.name}")


def title_of(verdict: PinVerdict) -> str:
    """Return the name of a definition, and how it stands."""
    difference, reaction = verdict.difference, verdict.reaction
    meaning = _MEANING[reaction]
    if reaction is Reaction.ACCEPT and Grade.REMOVED in difference.grades:
        meaning = "gone, as on_change accepts it"
    standing = click.style(verdict.standing.value, fg=_COLOURS[reaction], bold=True)
    return f"{_name_of(verdict)}: {standing}: {meaning}"


def _why(verdict: PinVerdict) -> Iterator[str]:
    """Yield what is different, in lines."""
    for change in verdict.difference.changes:
        part = f"{escaped(change.part)}: " if change.part else ""
        yield f"  {part}{change.grade.value}: {change.note}"
        yield from (f"    {line}" for line in instance_lines(change))
    yield from (f"  {line}" for line in finding_lines(verdict))


def instance_lines(change: PartChange) -> Iterator[str]:
    """Yield the values that show a change, one in each line."""
    for instance in change.instances:
        yield escaped_json(json.dumps(instance, ensure_ascii=False))


def finding_lines(verdict: PinVerdict) -> Iterator[str]:
    """Yield what the scan found in a definition, in lines."""
    for each in verdict.findings:
        tier = click.style(each.tier.value, fg="red" if each.tier is Tier.HARD else "yellow", bold=True)
        yield f"scan: {tier}: {escaped(each.pointer)}: {each.why}"
