"""Which definitions of a server are served: the one place that is asked. Pure: no I/O."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from portbook.pins.standing import PinVerdict
from portbook.upstreams.declared_upstream import DeclaredUpstream
from portbook.upstreams.definitions import ObservedDefinition, Offer

__all__ = ["Judgement", "Trust", "Withheld"]


class Withheld(NamedTuple):
    """A definition that is not served, and why."""

    observed: ObservedDefinition
    """The definition as observed; as approved, where the server no longer has it."""
    verdict: PinVerdict


class Judgement(NamedTuple):
    """What becomes of the definitions of one server."""

    served: tuple[ObservedDefinition, ...]
    """Those that are approved or accepted, in the order of the server."""
    withheld: tuple[Withheld, ...] = ()
    is_pending: bool = False
    """Whether nothing of the server is approved yet."""
    instructions: str | None = None
    """The server's own, where they are approved or accepted."""


class Trust(Protocol):
    """Decides which definitions are approved."""

    def known(self, declared: DeclaredUpstream) -> Offer | None:
        """Return what is known of a server before it was ever asked, or None."""
        ...

    def judge(self, declared: DeclaredUpstream, offer: Offer) -> Judgement:
        """Return which of all the definitions that a server has now are served, and which are withheld.

        It may take seconds, and is called in a thread.
        """
        ...

    def has_changed(self) -> bool:
        """Return whether something else is approved now than before."""
        ...
