"""`try_out`: starts an MCP server once, watched, and proposes the sandbox that it needs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from portbook.app.asked_servers import ask_servers
from portbook.sandbox import observe
from portbook.sandbox.declared_sandbox import DeclaredSandbox
from portbook.sandbox.proposal import propose, read_notes
from portbook.settings import Settings
from portbook.upstreams.declared_upstream import DeclaredUpstream

__all__ = ["NoTrial", "try_out"]


class NoTrial(Exception):
    """A server could not be tried out; the message says why."""


def try_out(settings: Settings, declared: DeclaredUpstream, environ: Mapping[str, str]) -> DeclaredSandbox:
    """Start a server without a sandbox, ask what it offers, end it; return the sandbox that this needs.

    No tool is called. Raises `NoTrial` where it cannot be started or watched.
    """
    if not declared.command:
        raise NoTrial("it is not started by Portbook: only servers with a command can be confined")
    if not observe.can_observe():
        raise NoTrial("this machine cannot watch what a program touches")
    with TemporaryDirectory(prefix="portbook-trial-") as scratch:
        notes = Path(scratch, "notes")
        watched = (sys.executable, "-I", "-S", observe.__file__, str(notes), *declared.command)
        alone = replace(declared, command=watched, sandbox=None, start="lazy")
        offer = asyncio.run(ask_servers(settings, [alone], environ))[declared.alias]
        if isinstance(offer, str):
            raise NoTrial(offer)
        touched = read_notes(notes.read_text())
    return propose(touched, declared.command, environ, declared.folder)
