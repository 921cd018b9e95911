"""`portbook audit`: verify, follow, show and export the execution log."""

from __future__ import annotations

import click

from portbook.cli import audit_export, audit_show, audit_tail, audit_verify
from portbook.cli.command_group import CommandGroup

__all__ = ["command"]


@click.group("audit", cls=CommandGroup)
def command() -> None:
    """Verify, follow, show and export the execution log."""


for _module in (audit_verify, audit_tail, audit_show, audit_export):
    command.add_command(_module.verb)
