"""`portbook audit`: verify, prove, follow, show and export the execution log."""

from __future__ import annotations

import click

from portbook.cli import (
    audit_checkpoints,
    audit_export,
    audit_key,
    audit_match,
    audit_prove,
    audit_show,
    audit_tail,
    audit_verify,
    audit_verify_proof,
)
from portbook.cli.main import CommandGroup

__all__ = ["command"]


@click.group("audit", cls=CommandGroup)
def command() -> None:
    """Verify, prove, follow, show and export the execution log."""


for _module in (
    audit_verify,
    audit_checkpoints,
    audit_prove,
    audit_verify_proof,
    audit_tail,
    audit_show,
    audit_export,
    audit_key,
    audit_match,
):
    command.add_command(_module.verb)
