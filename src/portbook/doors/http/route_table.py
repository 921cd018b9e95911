"""Every route of the HTTP door, in one place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from portbook.app.running_app import App
from portbook.audit.call_index_filters_and_figures import CallIndex
from portbook.doors.http.approval_routes import (
    APPROVALS,
    WAITING,
    decide_approval,
    list_approvals,
    list_waiting,
    show_approval,
)
from portbook.doors.http.console_and_docs_pages import DOCS, console, docs_page, readable_refusals
from portbook.doors.http.cors import is_shared_path
from portbook.doors.http.health_route import FAILS_EVERYWHERE, Fellows, health, livez
from portbook.doors.http.mcp.endpoint import ROUTE as MCP
from portbook.doors.http.mcp.endpoint import mcp
from portbook.doors.http.mcp.legacy_sse import legacy_sse
from portbook.doors.http.mcp.sessions import Sessions
from portbook.doors.http.openapi_json_routes import OPENAPI, OPERATOR_OPENAPI, describe_routes, openapi
from portbook.doors.http.operator.call_event_and_proof_routes import (
    CALLS,
    EVENTS,
    FIGURES,
    PROOF,
    count_calls,
    find_calls,
    follow_calls,
    prove_log,
    show_call,
    upstream_counts,
)
from portbook.doors.http.operator.pin_policy_and_upstream_routes import (
    EXPLAIN,
    PINS,
    POLICY,
    REPLAY,
    UPSTREAMS,
    decide_on_pins,
    explain_call,
    list_pins,
    list_upstreams,
    replay_calls,
    restart_upstream,
    show_policy,
)
from portbook.doors.http.rest_and_rpc_routes import EXECUTE, ROUTE, TOOLS, execute, rpc, tool, tools
from portbook.doors.http.router import Route, Router, Serve

if TYPE_CHECKING:
    from portbook.doors.http.mcp.session_mail_of_nodes import SharedSessions

__all__ = ["route_table", "routes_of", "sessions_of"]


def routes_of(
    served: App,
    warn: Callable[[str], None] = lambda _: None,
    *,
    has_legacy_sse: bool = False,
    workers: Fellows | None = None,
    sessions: Sessions | None = None,
) -> Router:
    """Return every route, behind the Host and Origin check and CORS."""
    routes = route_table(served, warn, has_legacy_sse=has_legacy_sse, workers=workers, sessions=sessions)
    return Router(routes, served.hosts, is_shared_path)


def route_table(
    served: App,
    warn: Callable[[str], None] = lambda _: None,
    *,
    has_legacy_sse: bool = False,
    workers: Fellows | None = None,
    sessions: Sessions | None = None,
) -> dict[tuple[str, str], Route]:
    """Return every route, by method and path; those of HTTP+SSE only where the operator wants them.

    `workers` are the processes that serve together with this one, where there are any; `sessions` are those
    that `sessions_of` returned, where the caller needs them, too.
    """
    sessions = sessions or sessions_of(served, warn)
    boundary, desk = served.boundary, served.approvals
    well = partial(health, served.checks, served.knows, served.server_statuses, workers)
    pages: dict[str, Serve] = {
        **console(lambda: served.needs_key, lambda: boundary.has_operator_key),
        DOCS: docs_page(),
        OPENAPI: openapi(boundary),
        APPROVALS: list_approvals(boundary, desk),
        f"{APPROVALS}/{{}}": show_approval(boundary, desk),
        "/health": well(),
        "/readyz": well(ignored=FAILS_EVERYWHERE if served.store.path is None else ()),
        "/livez": livez,
    }
    pages |= _operator_pages(served)
    routes: dict[tuple[str, str], Route] = {}
    for path, page in pages.items():
        routes["GET", path] = routes["HEAD", path] = Route(readable_refusals(page))
    for path, route in ((TOOLS, tools(boundary)), (f"{TOOLS}/{{}}", tool(boundary))):
        routes["GET", path] = route._replace(serve=readable_refusals(route.serve))
    routes["POST", f"{TOOLS}/{{}}"] = routes["POST", EXECUTE] = execute(boundary)
    routes["POST", ROUTE] = rpc(boundary)
    routes["POST", f"{APPROVALS}/{{}}"] = decide_approval(boundary, desk)
    for path, route in _operator_commands(served).items():
        routes["POST", path] = route
    for method, route in mcp(boundary, sessions).items():
        routes[method, MCP] = route
    if has_legacy_sse:
        routes |= legacy_sse(boundary, sessions, served.changes.on_close)
    return routes


def sessions_of(served: App, warn: Callable[[str], None]) -> Sessions:
    """Return the sessions of an app, which end with its changes."""
    sessions = Sessions(served.boundary, served.sessions, warn, shared=_shared(served))
    served.changes.on_close(sessions.close)
    return sessions


def _shared(served: App) -> SharedSessions | None:
    """Return how other processes have a part in the sessions of this one, where they have."""
    if served.nodes is None:
        return None
    from portbook.doors.http.mcp.session_mail_of_nodes import SharedSessions  # late: most servers are alone

    shared = SharedSessions(served.nodes.node, served.nodes.streams)
    served.nodes.on_close(shared.copies.flush)
    return shared


def _operator_pages(served: App) -> dict[str, Serve]:
    """Return what operators ask for; other sites' pages cannot, whichever origins are allowed."""
    boundary, index = served.boundary, CallIndex(served.log_dir)
    waiting = served.approvals.count_pending
    return {
        CALLS: find_calls(boundary, index),
        f"{CALLS}/{{}}": show_call(boundary, served.log_dir),
        FIGURES: count_calls(boundary, index, served.clock),
        EVENTS: follow_calls(
            boundary, index, waiting, lambda: upstream_counts(served), served.changes.on_close
        ),
        PROOF: prove_log(served),
        WAITING: list_waiting(served),
        UPSTREAMS: list_upstreams(served),
        PINS: list_pins(served),
        POLICY: show_policy(served),
        OPERATOR_OPENAPI: describe_routes(served),
    }


def _operator_commands(served: App) -> dict[str, Route]:
    """Return what operators do, and what they ask with more than an address can hold."""
    return {
        f"{UPSTREAMS}/{{}}": restart_upstream(served),
        f"{PINS}/{{}}": decide_on_pins(served),
        EXPLAIN: explain_call(served),
        REPLAY: replay_calls(served),
    }
