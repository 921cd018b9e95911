"""`try_out`: starts MCP servers once, watched, and proposes the sandbox that each of them needs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from portbook.app.servers_asked_once import ask_servers
from portbook.sandbox import observe
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.proposal import propose, read_notes
from portbook.settings import Settings
from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["NoTrial", "try_out"]


_NOT_STARTED: Final = "it is not started by Portbook: only servers with a command can be confined"


class NoTrial(Exception):
    """A server could not be tried out; the message says why."""


def try_out(
    settings: Settings, declared: Iterable[DeclaredUpstream], environ: Mapping[str, str]
) -> dict[str, DeclaredSandbox | NoTrial]:
    """Return the sandbox that each server needs, by alias, or why it could not be tried out.

    They are started side by side without a sandbox, asked what they offer, and ended. No tool is called.
    """
    every = {each.alias: each for each in declared}
    if not observe.can_observe():
        return dict.fromkeys(every, NoTrial("this machine cannot watch what a program touches"))
    programs = {alias: each for alias, each in every.items() if each.command}
    found: dict[str, DeclaredSandbox | NoTrial] = dict.fromkeys(every, NoTrial(_NOT_STARTED))
    with TemporaryDirectory(prefix="portbook-trial-") as scratch:
        notes = {alias: Path(scratch, alias) for alias in programs}
        watched = [_watched(each, notes[alias]) for alias, each in programs.items()]
        offers = asyncio.run(ask_servers(settings, watched, environ))
        for alias, each in programs.items():
            offer = offers[alias]
            if isinstance(offer, str):
                found[alias] = NoTrial(offer)
            else:
                touched = read_notes(notes[alias].read_text())
                found[alias] = propose(
                    touched, each.command, environ, each.starts_in.absolute(), _variables(each, environ)
                )
    return found


def _variables(declared: DeclaredUpstream, environ: Mapping[str, str]) -> list[str]:
    """Return the values of a server's own variables that are at hand."""
    return [source.text or environ.get(source.env or "", "") for source in declared.env.values()]


def _watched(declared: DeclaredUpstream, notes: Path) -> DeclaredUpstream:
    command = (sys.executable, "-I", "-S", observe.__file__, str(notes), *declared.command)
    return replace(declared, command=command, sandbox=None, start="lazy")
