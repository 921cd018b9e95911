"""`App`: a boundary that runs, the rules in force in it, and what has to be closed after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from portbook.app.health_checks import HealthChecks
from portbook.app.rules_from_settings import rules_of
from portbook.app.start_warnings import doubts_of
from portbook.app.usable_settings import audit_key_of, signer_of
from portbook.boundary import Boundary
from portbook.clock import Clock
from portbook.errors import Refused
from portbook.executors.dispatch import Dispatch
from portbook.executors.threads import LargeValues
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.task_board import TaskBoard
from portbook.model import JSON
from portbook.net.allowed_hosts_and_origins import Hosts
from portbook.pipeline import Pipeline
from portbook.protocol.message_validation import SchemaValidator
from portbook.settings import Settings
from portbook.stages.ports import Sink
from portbook.stages.rules_in_force import Rules
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.caller_keys import Keys
from portbook.stores.stored_sessions import SessionStore
from portbook.text.slotted import slotted
from portbook.tools.catalog import Catalog
from portbook.tools.toolset import Toolset

if TYPE_CHECKING:
    from portbook.app.checkpoint_task import CheckpointTask
    from portbook.app.node_from_settings import SharedParts
    from portbook.app.servers_from_settings import ServerReports
    from portbook.audit.shipping.shipping_task import ShippingTask
    from portbook.stores.shared_rates import TokenBlocks
    from portbook.stores.store_port import StorePort
    from portbook.upstreams.all_servers import Fleet

__all__ = ["App", "ClosableSink", "current_rules", "permit"]


class ClosableSink(Sink, Protocol):
    """A place for records that has an end."""

    def close(self) -> None:
        """Write what is left, and close it."""
        ...


@slotted(eq=False)
class App:
    """A boundary ready to answer, and what has to be closed after it."""

    boundary: Boundary
    catalog: Catalog
    approvals: ApprovalStore
    executor: Dispatch
    warnings: tuple[str, ...]
    is_exposed: bool
    hosts: Hosts
    _pipeline: Pipeline
    sink: ClosableSink
    store: StorePort
    keys: Keys
    _validator: SchemaValidator
    _health: HealthChecks
    changes: ChangeFeed
    sessions: SessionStore
    toolsets: tuple[Toolset, ...]
    _tasks: TaskBoard
    _environ: Mapping[str, str]
    _unwatch: tuple[Callable[[], None], ...]
    _large_values: LargeValues
    clock: Clock
    log_dir: Path
    """Where records are read from."""
    keep_runs: int
    servers: Fleet | None = None
    """The MCP servers behind the boundary, where there are any."""
    _reports: ServerReports | None = None
    _checkpoints: CheckpointTask | None = None
    """Covers the records, where they are written to files."""
    nodes: SharedParts | None = None
    """This process among others that serve the same MCP clients, where there are any."""
    _shipping: ShippingTask | None = None
    """Ships the records, where the settings say so."""
    _blocks: Callable[[], TokenBlocks] | None = None
    """Returns the tokens that this process has drawn, where calls are counted over several."""

    @property
    def needs_key(self) -> bool:
        """Return whether a call without a key is refused under the rules in force."""
        return self._pipeline.rules.callers.is_key_required

    @property
    def rules(self) -> Rules:
        """Return the rules in force."""
        return self._pipeline.rules

    def tools_open_to(self, key: str | None) -> list[str]:
        """Return the names of the tools that the holder of `key` may see.

        Raises `Refused` where the key opens nothing.
        """
        caller = self._pipeline.rules.callers.identify(key)
        return [tool.spec.name for tool in self._pipeline.visible_to(caller)]

    def govern(self, settings: Settings) -> list[str]:
        """Put the rules of changed settings into force: policy, keys and redaction. Tools stay as they are.

        Return likely mistakes in them, as warnings for the operator.

        Raises `BadSettings` for settings that cannot be used; the old rules then stay in force.
        """
        rules = current_rules(
            settings,
            self.catalog,
            self.executor,
            self.keys,
            self.store,
            self._environ,
            is_exposed=self.is_exposed,
            blocks=self._blocks,
        )
        permit(self.executor, rules)
        self._pipeline.govern(rules)
        return doubts_of(settings, rules.policy, self.catalog, self._environ, self.store)

    def knows(self, key: str | None) -> bool:
        """Return whether `key` may see the health checks: any valid key, or none if none is required."""
        callers = self._pipeline.rules.callers
        if callers.is_operator(key):
            return True
        try:
            callers.identify(key)
        except Refused:
            return False
        return True

    async def checks(self, deep: bool) -> Mapping[str, str | None]:
        """Return the problem of each part, None if it works; `deep` also connects to the gateways."""
        return await self._health.problems(deep)

    def server_statuses(self) -> list[JSON]:
        """Return how each MCP server is doing, as JSON."""
        return [] if self.servers is None else [each.as_data() for each in self.servers.statuses()]

    def start(self) -> None:
        """Start the MCP servers that are wanted at all times, and checkpoints. In the event loop."""
        if self._checkpoints is not None:
            self._checkpoints.start()
        if self.nodes is not None:
            self.nodes.node.start()
        if self._shipping is not None:
            self._shipping.start()
        if self.servers is not None:
            self.servers.start()
        if self._reports is not None:
            self._reports.start()

    def take_over(self, old: App) -> Coroutine[Any, Any, None]:
        """Keep the tasks of an app that ends; return what waits until those that run have ended."""
        running = self._tasks.take_over(old._tasks)
        return _ended(running)

    def let_tasks_end(self) -> None:
        """Let tasks come to their end before this is closed: a newer one has taken its place."""
        self._tasks.let_end()

    def let_no_task_end(self) -> None:
        """Take that back: the newer one ends, too."""
        self._tasks.let_none_end()

    def unwatch(self) -> None:
        """Stop listening to the toolsets, which may outlive this boundary."""
        for unwatch in self._unwatch:
            unwatch()

    async def close(self) -> None:
        """Close what was opened."""
        self.unwatch()
        await self._tasks.close()
        if self.nodes is not None:
            await self.nodes.close()
        if self._reports is not None:
            await self._reports.close()
        await self.executor.close()
        self._large_values.close()
        if self._checkpoints is not None:
            await self._checkpoints.close()
        if self._shipping is not None:
            await self._shipping.close()
        self.sink.close()
        self.store.close()  # before the approvals, so that ended calls are stored as ended
        self.approvals.close()
        if self.nodes is not None:
            self.nodes.node.release()
        self._validator.shutdown()


async def _ended(running: Sequence[asyncio.Task[None]]) -> None:
    if running:
        await asyncio.wait(running)


def current_rules(
    settings: Settings,
    catalog: Catalog,
    executor: Dispatch,
    keys: Keys,
    store: StorePort,
    environ: Mapping[str, str],
    *,
    is_exposed: bool,
    blocks: Callable[[], TokenBlocks] | None,
) -> Rules:
    """Return the rules that `settings` describe, with the keys and the secrets known at this moment."""
    return rules_of(
        settings,
        catalog.specs(),
        environ,
        is_exposed=is_exposed,
        stored=keys.configured,
        secrets=executor.secrets(),
        hash_key=_hash_key(settings, store),
        signer=signer_of(settings),
        audit_key=audit_key_of(settings),
        blocks=blocks,
    )


def permit(executor: Dispatch, rules: Rules) -> None:
    """Let tools go where the policy of `rules` allows, and nowhere else."""
    policy = rules.policy
    if policy.destinations is None:
        return
    if executor.http is not None:
        executor.http.permit(policy.destinations, policy.limits.max_attempts)
    if executor.servers is not None:
        executor.servers.permit(policy.destinations)


def _hash_key(settings: Settings, store: StorePort) -> bytes:
    # The key of the store: the same secret has the same hash in every record, and it cannot be guessed.
    return store.key if settings.redaction_enabled and settings.redaction_mode == "hash" else b""
