"""What policy decides on the approved tools of MCP servers, without asking them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from portbook.access.callers import ANONYMOUS
from portbook.app.rules_from_settings import policy_of
from portbook.pins.approved_definitions_in_lock import PinLock
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.policy import Action, PolicyInput, decide
from portbook.settings import Settings
from portbook.tools.spec import Effect
from portbook.upstreams.listed_definitions import ObservedDefinition
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.names_effects_and_skills import specs_of

__all__ = ["OfferedDecision", "offered_decisions"]


class OfferedDecision(NamedTuple):
    """What happens to a call of one tool, whatever its arguments are."""

    server: str
    name: str
    effect: Effect
    action: Action


def offered_decisions(settings: Settings, declared: Iterable[DeclaredUpstream]) -> Iterator[OfferedDecision]:
    """Yield the decision on every approved tool.

    Raises `BadSettings` and `BadLock` for what cannot be used.
    """
    pins = PinLock.read(settings.folder).servers
    policy = policy_of(settings, ())
    for server in declared:
        approved = pins.get(server.alias, ServerDefinitions())
        definitions = [
            ObservedDefinition(server.alias, "tool", name, {"name": name, **parts})
            for name, parts in approved.tools.items()
        ]
        for spec in specs_of(server, definitions, completes=False):
            decision = decide(policy, PolicyInput.of(spec, {}, caller=ANONYMOUS.name))
            yield OfferedDecision(server.alias, spec.declared, spec.effect, decision.action)
