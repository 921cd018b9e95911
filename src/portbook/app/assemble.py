"""Settings to a running boundary: the one place that picks parts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import TYPE_CHECKING

from portbook.app.checkpoint_task import CheckpointTask
from portbook.app.fault_report import report_fault
from portbook.app.health_checks import HealthChecks
from portbook.app.rules_from_settings import learn_secrets
from portbook.app.running_app import App, ClosableSink, current_rules, permit
from portbook.app.start_warnings import doubts_of
from portbook.app.store_from_settings import store_of
from portbook.app.tools_from_settings import Collected
from portbook.app.usable_settings import usable_settings
from portbook.audit.journal import Journal
from portbook.boundary import Boundary
from portbook.clock import Clock, SystemClock
from portbook.dialects.asset_messages import Bare
from portbook.exception_place import Fault
from portbook.executors.dispatch import Dispatch
from portbook.executors.python import PythonExecutor
from portbook.executors.threads import LargeValues, LoopTurn
from portbook.ids import ContentIds, Ids, RandomIds
from portbook.mcp.dialect import McpDialect
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.method_handlers import About
from portbook.mcp.rounds_and_request_state import SignedStates
from portbook.mcp.task_board import TaskBoard
from portbook.pipeline import Pipeline
from portbook.protocol.message_validation import SchemaValidator
from portbook.schema.official_schemas import SchemaStore
from portbook.settings import BadSettings, Settings
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore
from portbook.stores.caller_keys import Keys
from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.stored_sessions import SessionStore
from portbook.tools.tool_names import ASSET_TOOLS
from portbook.tools.toolset import Toolset
from portbook.version import __version__

if TYPE_CHECKING:
    from portbook.net.http_client import HttpClient
    from portbook.stores.shared_rates import TokenBlocks
    from portbook.stores.store_port import StorePort

__all__ = ["assemble", "official_schemas", "open_journal"]


def assemble(
    settings: Settings,
    *,
    is_exposed: bool,
    sink: ClosableSink | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    warn: Callable[[str], None] = lambda _: None,
    toolsets: Sequence[Toolset] = (),
    environ: Mapping[str, str] = os.environ,
    draw: Callable[[int], bytes] = os.urandom,
    http: Callable[[], HttpClient] | None = None,
    on_fault: Callable[[Fault], None] | None = None,
    is_server: bool = False,
    is_shared: bool = False,
) -> App:
    """Return the boundary that `settings` describe; `is_exposed` if a different machine can reach it.

    `toolsets` are served beside those that the settings name. `draw` gives random bytes, `http` makes the
    client that calls HTTP APIs, and `on_fault` is shown what a tool raised; by default, standard error is.
    `is_server` tells whether it serves until it is stopped: the link to the latest records then leads to
    its own. `is_shared` tells whether other processes with the same store serve the same MCP clients; the
    settings can say so, too.

    Raises `BadTool`, `BadBundle`, `BadSettings` or `OSError` for what cannot be served, read or written.
    """
    clock = clock or SystemClock()
    ids = ids or (ContentIds() if settings.deterministic_ids else RandomIds())
    hosts, contracts, collected = usable_settings(settings, environ, is_exposed=is_exposed, toolsets=toolsets)
    warnings = list(collected.warnings)
    store = store_of(settings, draw=draw)
    keys = Keys(store, clock)
    if settings.store_url is not None:
        with contextlib.suppress(StoreError):  # told below, with the other doubts
            keys.configured()  # connects now, so that no call waits for it
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
    blocks = cache(partial(_token_blocks, store, clock))
    rules = current_rules(
        settings, collected.catalog, executor, keys, store, environ, is_exposed=is_exposed, blocks=blocks
    )
    if rules.callers.is_key_required and not settings.allowed_keys and not keys.allowed():
        asks = ("keys", "required") if settings.keys_required else ("server", "host")
        warnings.append(
            f"{settings.opening(*asks)}a key is required and none exists; "
            "create one with `portbook keys create`"
        )
    permit(executor, rules)
    schemas, override_warnings = official_schemas(settings)
    warnings.extend(override_warnings)
    validator = SchemaValidator(schemas)
    validator.initialize()
    # A sink that is given notes records for the call that is running: they cannot wait for others.
    turn = LoopTurn() if sink is None else None
    sink = sink or _usable_journal(settings, clock, is_server=is_server)
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
        turn=turn,
    )
    checkpoints = None
    if isinstance(sink, Journal) and settings.checkpoint_s and _can_keep_checkpoints(settings, store):
        checkpoints = CheckpointTask(
            sink,
            store,
            settings.log_dir,
            clock,
            lambda: pipeline.rules.enclosing.signer,
            warn,
            interval_s=settings.checkpoint_s,
        )
    shipping = None
    if settings.ship is not None and isinstance(sink, Journal):
        from portbook.app.shipping_from_settings import shipping_of  # late: few ship their records

        shipping = shipping_of(settings, environ, store, warn)
    on_secret.append(partial(learn_secrets, pipeline, executor))
    tasks, notices = TaskBoard(clock, draw), ChangeFeed()
    servers = reports = None
    if collected.servers:
        # Only where there is a server to call.
        from portbook.app.servers_from_settings import ServerReports, fleet_of, trust_of
        from portbook.stores.upstream_status_and_offers import UpstreamStore

        trust = trust_of(settings, store, clock, warn)
        servers = fleet_of(collected, executor, validator, notices, environ, pipeline, trust, warn)
        reports = ServerReports(servers, UpstreamStore(store, clock), clock, warn)
        permit(executor, rules)
    # After the servers, whose approved tools a rule may name.
    warnings.extend(doubts_of(settings, rules.policy, collected.catalog, environ, store))
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
            dict if servers is None else servers.offers.instructions,
            tuple if servers is None else servers.missing,
        ),
        incoming=settings.incoming_validation,
        outgoing=settings.outgoing_validation,
        warn=warn,
    )
    boundary = Boundary(
        pipeline, contracts.envelope, official, Bare(ASSET_TOOLS), contracts.rest, tasks, notices, servers
    )
    nodes = None
    if (is_shared or (is_server and settings.is_shared)) and not store.is_memory:
        from portbook.app.node_from_settings import SharedParts  # late: most servers are alone

        nodes = SharedParts(store, clock, draw, tasks, notices, warn)
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
        store=store,
        keys=keys,
        _validator=validator,
        _health=HealthChecks(store, sink, pipeline, executor.http, gateways, clock, servers, shipping),
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
        _checkpoints=checkpoints,
        nodes=nodes,
        _shipping=shipping,
        _blocks=blocks,
    )


def _token_blocks(store: StorePort, clock: Clock) -> TokenBlocks:
    from portbook.stores.shared_rates import TokenBlocks  # late: one process alone counts in memory

    return TokenBlocks(store, clock.tick)


def _can_keep_checkpoints(settings: Settings, store: StorePort) -> bool:
    """Return whether there is a store for checkpoints.

    Not one that ends with its process: nobody could compare the records with it. Nor one that no settings
    speak of, in a folder that has nothing to do with the records: a client may start a server anywhere.
    """
    if store.is_memory:
        return False
    if store.path is None:  # a database of its own, which the settings name
        return True
    is_beside = settings.log_dir.absolute().parent == store.path.absolute().parent
    return is_beside or settings.config is not None or store.path.exists()


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


def _usable_journal(settings: Settings, clock: Clock, *, is_server: bool) -> Journal:
    try:
        return open_journal(settings, clock, is_server=is_server)
    except OSError as error:
        why = f"cannot be written: {error.filename or settings.log_dir}: {error.strerror or error}"
        remedy = "free space or correct its rights, or name a different folder with --log-dir"
        place = settings.opening("audit", "log_dir")
        raise BadSettings(f"{place}audit.log_dir {why}; {remedy}") from None


def official_schemas(settings: Settings) -> tuple[SchemaStore, list[str]]:
    """Return the official schemas in force, and warnings: an override that cannot be used is ignored.

    Raises `BrokenSchema` where an embedded one is missing or damaged.
    """
    embedded = SchemaStore()
    embedded.verify()
    if settings.schema_override_uri is None:
        return embedded, []
    from portbook.app.official_schema_override import overridden_schemas  # late: seldom replaced

    return overridden_schemas(settings, settings.schema_override_uri, embedded)


def _executor(
    settings: Settings,
    collected: Collected,
    environ: Mapping[str, str],
    make_client: Callable[[], HttpClient] | None,
) -> tuple[Dispatch, list[Callable[[], None]]]:
    """Return the executor of tools, and a list of functions to call when it learns a secret."""
    python = PythonExecutor(workers=settings.tool_threads)
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


def _placed(settings: Settings, problem: str) -> str:
    """Return a problem that begins with the key of a setting, with the place of that key."""
    return f"{settings.position_of(*problem.partition(':')[0].split('.'))}: {problem}"


def _state_key(store: StorePort, draw: Callable[[int], bytes]) -> Callable[[], bytes]:
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
