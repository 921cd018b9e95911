"""How a server ends and reloads: SIGINT and SIGTERM, SIGHUP, or when a newer one is ready."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from portbook.app.running_app import App
from portbook.canonical import fingerprint
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS
from portbook.cli.output_and_errors import problems_of, say
from portbook.cli.stderr_queue import drain_output
from portbook.model import Kind
from portbook.settings import CONFIG_NAME, BadSettings, Settings
from portbook.tools.catalog import Catalog
from portbook.tools.toolset import Changed

__all__ = [
    "Door",
    "ReplacedDoor",
    "changed_lists",
    "leave",
    "reload_rules",
    "served_counts",
    "served_lists",
    "stop_on_signals",
]


class Door(Protocol):
    """A transport that can be served and stopped."""

    async def serve(self) -> None:
        """Serve until the input ends or `stop` is called."""
        ...

    def stop(self) -> None:
        """Finish the calls in flight and take no more."""
        ...


def stop_on_signals(
    doors: list[Door],
    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM),
    before_exit: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Stop the doors at a signal, after `before`; a second signal ends the process, after `before_exit`."""
    loop = asyncio.get_running_loop()
    is_stopping = False

    def stop() -> None:
        nonlocal is_stopping
        if is_stopping:  # the second signal: the operator does not want to wait
            before_exit()
            drain_output()
            os._exit(ExitCode.INTERRUPTED)
        is_stopping = True
        say("finishing calls in flight; press Ctrl-C again to stop now")
        before()
        for door in doors:
            door.stop()

    for number in numbers:
        loop.add_signal_handler(number, stop)


class ReplacedDoor(Protocol):
    """A transport whose address a newer process has taken over."""

    def retire(self) -> None:
        """Finish the calls in flight, and those that clients are about to send."""
        ...


def leave(app: App, doors: Sequence[ReplacedDoor], *, lists_differ: bool) -> None:
    """End the calls under way, for a newer server has taken over; tell clients where its lists differ."""
    for kind in LISTED:
        if lists_differ and app.catalog.of(kind):
            app.changes.publish(Changed(kind))
    app.approvals.stop_waiting()
    app.let_tasks_end()
    for door in doors:
        door.retire()


# SIGHUP: read the settings file again, and put its rules into force.


def reload_rules(
    app: App, load: Callable[[], Settings], reload_certificate: Callable[[], None] | None = None
) -> None:
    """Put the rules of the changed settings file into force, or keep the old ones if it cannot be used.

    So for the certificate of the server, if it has one.
    """
    if reload_certificate is not None:
        try:
            reload_certificate()
        except ValueError as error:
            say(f"error: {error}")
            say("the old certificate stays in use")
    try:
        settings = load()
        if settings.config is None or not settings.is_given:
            raise BadSettings(f"{settings.config or CONFIG_NAME}: holds no settings")
        doubts = app.govern(settings)
    except (*START_ERRORS, OSError) as error:
        for problem in problems_of(error):
            say(f"error: {problem}")
        say("reload failed; the old rules stay in force")
    else:
        for doubt in doubts:
            say(f"warning: {doubt}")
        say("reloaded policy, keys and redaction; restart to change tools")


# What clients see of the lists of tools, resources and prompts: which of them a reload has changed.

LISTED: Final[tuple[Kind, ...]] = ("tool", "resource", "prompt")


def served_lists(catalog: Catalog) -> dict[Kind, str]:
    """Return the digest of each list."""
    return {kind: fingerprint([[tool.listed, tool.digest] for tool in catalog.of(kind)]) for kind in LISTED}


def changed_lists(old: Mapping[Kind, str], new: Mapping[Kind, str]) -> list[Kind]:
    """Return the kinds whose lists differ."""
    return [kind for kind in LISTED if old.get(kind) != new.get(kind)]


# How many tools, resources and prompts are served, in words.


def served_counts(catalog: Catalog) -> str:
    """Return how many of each kind are served; `0 tools` if there is nothing."""
    kinds = ("tool", "resource", "prompt")
    counts = [(kind, sum(spec.kind == kind for spec in catalog.specs())) for kind in kinds]
    shown = [each for each in counts if each[1]] or counts[:1]
    return ", ".join(f"1 {kind}" if count == 1 else f"{count} {kind}s" for kind, count in shown)
