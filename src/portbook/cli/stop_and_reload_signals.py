"""How a server ends and reloads: SIGINT and SIGTERM, SIGHUP, or when a newer one is ready."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

from portbook.app.running_app import App
from portbook.canonical import fingerprint
from portbook.cli.exit_codes import exit_code_of_program
from portbook.cli.options import START_ERRORS
from portbook.cli.output_and_errors import problems_of, say
from portbook.cli.stderr_queue import drain_output
from portbook.model import Kind
from portbook.settings import CONFIG_NAME, BadSettings, Settings
from portbook.tools.catalog import Catalog
from portbook.tools.toolset import Changed

__all__ = [
    "FINISHING",
    "Door",
    "ReplacedDoor",
    "changed_lists",
    "leave",
    "on_signal",
    "reload_rules",
    "served_counts",
    "served_lists",
    "stop_on_signals",
]


# What an operator is told at the first signal.
FINISHING: Final = "finishing calls in flight; press Ctrl-C again, or send the signal again, to stop now"


class Door(Protocol):
    """A transport that can be served and stopped."""

    async def serve(self) -> None:
        """Serve until the input ends or `stop` is called."""
        ...

    def stop(self) -> None:
        """Finish the calls in flight and take no more."""
        ...


# The signals that this process handles in its event loop, and whether it was started with each ignored, as
# below `nohup`; and, while a thread forks, those it had blocked.
_heeded: dict[int, bool] = {}
_forking = threading.local()


def on_signal(number: int, act: Callable[[], None]) -> None:
    """Let the event loop run `act` at a signal that is sent to this process, and to none that it forks.

    A forked process shares the pipe through which the loop hears of signals: a SIGTERM that ends it, as
    `multiprocessing` ends its workers, would end the server.
    """
    if not _heeded:
        os.register_at_fork(before=_hold_signals, after_in_parent=_release, after_in_child=_forget_signals)
    _heeded.setdefault(number, signal.getsignal(number) is signal.SIG_IGN)
    asyncio.get_running_loop().add_signal_handler(number, act)


def _hold_signals() -> None:
    """Let signals wait that come before a forked process has forgotten those of this one."""
    _forking.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _heeded)


def _release() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.blocked)


def _forget_signals() -> None:
    """Give a forked process the signals of a new one."""
    signal.set_wakeup_fd(-1)
    for number, was_ignored in _heeded.items():
        own = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN if was_ignored else own)
    _release()


def stop_on_signals(
    doors: list[Door],
    numbers: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM),
    before_exit: Callable[[], None] = lambda: None,
    before: Callable[[], None] = lambda: None,
) -> None:
    """Stop the doors at a signal, after `before`; a second signal ends the process, after `before_exit`."""
    is_stopping = False

    def stop(number: int) -> None:
        nonlocal is_stopping
        if is_stopping:  # the second signal: the operator does not want to wait
            before_exit()
            drain_output()
            os._exit(exit_code_of_program(-number))
        is_stopping = True
        say(FINISHING)
        before()
        for door in doors:
            door.stop()

    for number in numbers:
        on_signal(number, partial(stop, number))


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
        if settings.config is None:
            remedy = f"write {CONFIG_NAME} where the server was started, or start it with --config"
            raise BadSettings(f"there is no settings file; {remedy}")
        if not settings.is_given:
            raise BadSettings(f"{settings.config}: holds no settings; restore them, or stop the server")
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
