"""Asks at the terminal which of the listed calls to approve or deny, by the number of their line."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from portbook.access.approval_ticket import Ticket
from portbook.cli.terminal import say

__all__ = ["ask_which"]


def ask_which(tickets: Sequence[Ticket], decide: Callable[[Ticket, str], None]) -> bool:
    """Ask which of the listed calls to decide: a number means the line that was shown, come what may.

    Return whether one was decided; False where the person leaves.
    """
    while True:
        said = click.prompt(
            "a NUMBER approves, d NUMBER denies, Enter leaves", default="", show_default=False, err=True
        )
        if not said.strip():
            return False
        word, _, number = said.strip().partition(" ")
        decision = {"a": "approve", "d": "deny"}.get(word)
        if decision is not None and number.isdecimal() and 1 <= int(number) <= len(tickets):
            decide(tickets[int(number) - 1], decision)
            return True
        say(f"error: write a or d and a number from 1 to {len(tickets)}, such as: a 1")
