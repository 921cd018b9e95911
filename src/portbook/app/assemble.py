"""Settings to a running boundary: the one place that picks parts."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from portbook.app.fault_report import report_fault
from portbook.app.health_checks import HealthChecks
from portbook.app.learned_secrets import learn_secrets
from portbook.app.rules_from_settings import rules_of
from portbook.app.start_warnings import doubts_of
from portbook.app.tools_from_settings import Collected
from portbook.app.usable_settings import signer_of, usable_settings
from portbook.audit.journal import Journal
from portbook.boundary import Boundary
from portbook.clock import Clock, SystemClock
from portbook.dialects.bare import Bare
from portbook.errors import Refused
from portbook.exception_place import Fault
from portbook.executors.dispatch import Dispatch
from portbook.executors.large_values import LargeValues
from portbook.executors.loop_turn import LoopTurn
from portbook.executors.python import PythonExecutor
from portbook.ids import ContentIds, Ids, RandomIds
from portbook.mcp.dialect import McpDialect
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.request_state import SignedStates
from portbook.mcp.server_info import About
from portbook.mcp.task_board import TaskBoard
from portbook.net.allowed_hosts_and_origins import Hosts
from portbook.pipeline import Pipeline
from portbook.protocol.conformance import SchemaValidator
from portbook.schema.store import SchemaStore
from portbook.settings import Settings
from portbook.stages.ports import Sink
from portbook.stages.rules import Rules
from portbook.stores.approvals import ApprovalStore
from portbook.stores.errors import StoreError
from portbook.stores.keys import Keys
from portbook.stores.sessions import SessionStore
from portbook.stores.sqlite import Store
from portbook.tools.asset_tool_names import ASSET_TOOLS
from portbook.tools.catalog import Catalog
from portbook.tools.toolset import Toolset
from portbook.version import __version__

if TYPE_CHECKING:
    from portbook.app.server_reports import ServerReports
    from portbook.net.http_client import HttpClient
    from portbook.upstreams.fleet import Fleet

__all__ = ["App", "assemble", "official_schemas", "open_journal"]


class _ClosableSink(Sink, Protocol):
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    sink: _ClosableSink
    _store: Store
    _keys: Keys
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

    @property
    def needs_key(self) -> bool:
        """Return whether a call without a key is refused under the rules in force."""
        return self._pipeline.rules.callers.is_key_required

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
        rules = _rules(
            settings,
            self.catalog,
            self.executor,
            self._keys,
            self._store,
            self._environ,
            is_exposed=self.is_exposed,
        )
        _permit(self.executor, rules)
        self._pipeline.govern(rules)
        return doubts_of(settings, rules.policy, self.catalog.specs(), self._environ)

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

    def start(self) -> None:
        """Start the MCP servers that are wanted at all times. In the event loop."""
        if self.servers is not None:
            self.servers.start()
        if self._reports is not None:
            self._reports.start()

    def take_over(self, old: App) -> Coroutine[Any, Any, None]:
        """Keep the tasks of an app that ends; return what waits until those that run have ended."""
        running = self._tasks.take_over(old._tasks)
        return _ended(running)

    def unwatch(self) -> None:
        """Stop listening to the toolsets, which may outlive this boundary."""
        for unwatch in self._unwatch:
            unwatch()

    async def close(self) -> None:
        """Close what was opened."""
        self.unwatch()
        await self._tasks.close()
        if self._reports is not None:
            await self._reports.close()
        await self.executor.close()
        self._large_values.close()
        self.sink.close()
        self._store.close()  # before the approvals, so that ended calls are stored as ended
        self.approvals.close()
        self._validator.shutdown()


async def _ended(running: Sequence[asyncio.Task[None]]) -> None:
    if running:
        await asyncio.wait(running)


def assemble(
    settings: Settings,
    *,
    is_exposed: bool,
    sink: _ClosableSink | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    warn: Callable[[str], None] = lambda _: None,
    toolsets: Sequence[Toolset] = (),
    environ: Mapping[str, str] = os.environ,
    draw: Callable[[int], bytes] = os.urandom,
    http: Callable[[], HttpClient] | None = None,
    on_fault: Callable[[Fault], None] | None = None,
    is_server: bool = False,
) -> App:
    """Return the boundary that `settings` describe; `is_exposed` if a different machine can reach it.

    `toolsets` are served beside those that the settings name. `draw` gives random bytes, `http` makes the
    client that calls HTTP APIs, and `on_fault` is shown what a tool raised; by default, standard error is.
    `is_server` tells whether it serves until it is stopped: the link to the latest records then leads to
    its own.

    Raises `BadTool`, `BadBundle`, `BadSettings` or `OSError` for what cannot be served, read or written.
    """
    clock = clock or SystemClock()
    ids = ids or (ContentIds() if settings.deterministic_ids else RandomIds())
    hosts, contracts, collected = usable_settings(settings, environ, is_exposed=is_exposed, toolsets=toolsets)
    warnings = list(collected.warnings)
    store = Store(settings.store_path, draw=draw)
    keys = Keys(store, clock)
    approvals = ApprovalStore(
        store,
        clock,
        expires_s=settings.approval_expires_s,
        wait_s=settings.approval_wait_s,
        draw_id=lambda: draw(16).hex(),
        warn=warn,
    )
    executor, on_secret = _executor(settings, collected, environ, http)
    if executor.http is not None:
        warnings.extend(_placed(settings, problem) for problem in executor.http.problems())
    rules = _rules(settings, collected.catalog, executor, keys, store, environ, is_exposed=is_exposed)
    if rules.callers.is_key_required and not settings.allowed_keys and not keys.allowed():
        warnings.append("a key is required and none exists; create one with `portbook keys create`")
    _permit(executor, rules)
    warnings.extend(doubts_of(settings, rules.policy, collected.catalog.specs(), environ))
    schemas, override_warnings = official_schemas(settings)
    warnings.extend(override_warnings)
    validator = SchemaValidator(schemas)
    validator.initialize()
    sink = sink or open_journal(settings, clock, is_server=is_server)
    large_values = LargeValues()
    pipeline = Pipeline(
        catalog=collected.catalog,
        rules=rules,
        executor=executor,
        approvals=approvals,
        sink=sink,
        clock=clock,
        ids=ids,
        warn=warn,
        on_fault=on_fault or partial(report_fault, with_traceback=settings.tracebacks),
        off_loop=large_values,
        turn=LoopTurn(),
    )
    on_secret.append(lambda: learn_secrets(pipeline, executor))
    tasks, notices = TaskBoard(clock, draw), ChangeFeed()
    servers = reports = None
    if collected.servers:
        # Only where there is a server to call.
        from portbook.app.pins_from_settings import trust_of
        from portbook.app.server_reports import ServerReports
        from portbook.app.servers_from_settings import fleet_of
        from portbook.stores.upstreams import UpstreamStore

        trust = trust_of(settings, store, clock, warn)
        servers = fleet_of(collected, executor, validator, notices, environ, pipeline, trust, warn)
        reports = ServerReports(servers, UpstreamStore(store, clock), clock, warn)
        _permit(executor, rules)
    official = McpDialect(
        collected.catalog,
        validator,
        states=SignedStates(_state_key(store, draw), clock),
        desk=tasks,
        about=About(
            settings.server_name,
            settings.server_title,
            settings.server_version or __version__,
            settings.server_instructions,
        ),
        incoming=settings.incoming_validation,
        outgoing=settings.outgoing_validation,
        warn=warn,
    )
    boundary = Boundary(
        pipeline, contracts.envelope, official, Bare(ASSET_TOOLS), contracts.rest, tasks, notices, servers
    )
    gateways = [gateway.name for gateway in collected.gateways]
    # Last: whatever cannot be served is raised before a toolset knows of this boundary.
    unwatch = tuple(toolset.watch(notices.publish) for toolset in collected.toolsets)
    return App(
        boundary=boundary,
        catalog=collected.catalog,
        approvals=approvals,
        executor=executor,
        warnings=tuple(warnings),
        is_exposed=is_exposed,
        hosts=hosts,
        _pipeline=pipeline,
        sink=sink,
        _store=store,
        _keys=keys,
        _validator=validator,
        _health=HealthChecks(store, sink, pipeline, executor.http, gateways, clock, servers),
        changes=notices,
        sessions=SessionStore(store, clock),
        toolsets=collected.toolsets,
        _tasks=tasks,
        _environ=environ,
        _unwatch=unwatch,
        _large_values=large_values,
        clock=clock,
        log_dir=settings.log_dir,
        keep_runs=settings.keep_runs,
        servers=servers,
        _reports=reports,
    )


def open_journal(settings: Settings, clock: Clock, *, is_server: bool) -> Journal:
    """Return the journal for the records of this run.

    Raises `OSError` where the folder cannot be written.
    """
    return Journal(
        settings.log_dir,
        started=clock.now(),
        run=RandomIds().name(b"")[0][:8].decode(),
        keep=settings.keep_runs,
        to_stderr=settings.audit_to_stderr,
        is_server=is_server,
    )


def official_schemas(settings: Settings) -> tuple[SchemaStore, list[str]]:
    """Return the official schemas in force, and warnings: an override that cannot be used is ignored.

    Raises `BrokenSchema` where an embedded one is missing or damaged.
    """
    embedded = SchemaStore()
    embedded.verify()
    uri, revision = settings.schema_override_uri, settings.schema_override_revision
    if uri is None:
        return embedded, []
    # Late: a schema is seldom replaced.
    from portbook.net.fetch import CannotFetch, fetch, without_secrets
    from portbook.schema.override import FETCH_S, MAX_BYTES, BadOverride, check_override

    origin = without_secrets(uri)
    try:
        data = fetch(uri, limit=MAX_BYTES, timeout_s=FETCH_S)
        override = check_override(data, revision, settings.schema_override_sha256, origin=origin)
    except CannotFetch as error:
        reason = str(error)
    except BadOverride as error:
        reason = f"{origin}: {error}"
    else:
        return SchemaStore(override), []
    return embedded, [f"the schema override is ignored and the embedded schemas are used: {reason}"]


def _executor(
    settings: Settings,
    collected: Collected,
    environ: Mapping[str, str],
    make_client: Callable[[], HttpClient] | None,
) -> tuple[Dispatch, list[Callable[[], None]]]:
    """Return the executor of tools, and a list of functions to call when it learns a secret."""
    python = PythonExecutor(workers=settings.workers)
    on_secret: list[Callable[[], None]] = []
    if not collected.gateways:
        return Dispatch(python), on_secret
    from portbook.executors.http import HttpExecutor  # only where there is an API to call
    from portbook.net.destinations import Destinations

    def notice(_: str) -> None:
        for each in on_secret:
            each()

    http = HttpExecutor(
        collected.gateways,
        destinations=Destinations(),
        environ=environ,
        client=None if make_client is None else make_client(),
        notice=notice,
    )
    return Dispatch(python, http), on_secret


def _rules(
    settings: Settings,
    catalog: Catalog,
    executor: Dispatch,
    keys: Keys,
    store: Store,
    environ: Mapping[str, str],
    *,
    is_exposed: bool,
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
    )


def _placed(settings: Settings, problem: str) -> str:
    """Return a problem that begins with the key of a setting, with the place of that key."""
    return f"{settings.position_of(*problem.partition(':')[0].split('.'))}: {problem}"


def _permit(executor: Dispatch, rules: Rules) -> None:
    policy = rules.policy
    if policy.destinations is None:
        return
    if executor.http is not None:
        executor.http.permit(policy.destinations, policy.limits.max_attempts)
    if executor.servers is not None:
        executor.servers.permit(policy.destinations)


def _hash_key(settings: Settings, store: Store) -> bytes:
    # The key of the store: the same secret has the same hash in every record, and it cannot be guessed.
    return store.key if settings.redaction_enabled and settings.redaction_mode == "hash" else b""


def _state_key(store: Store, draw: Callable[[int], bytes]) -> Callable[[], bytes]:
    """Return the key that signs the states of calls: the store's, which every process knows.

    If the store cannot be used, a key of this process alone: such states end with the process.
    """
    own = draw(32)

    def key() -> bytes:
        try:
            return store.key
        except StoreError:
            return own

    return key
