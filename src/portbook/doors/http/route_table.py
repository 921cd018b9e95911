"""Every route of the HTTP door, in one place."""

from __future__ import annotations

from collections.abc import Callable

from portbook.access.approval_ticket import State
from portbook.app.assemble import App
from portbook.audit.call_index import CallIndex
from portbook.doors.http.approvals import APPROVALS, decide_approval, list_approvals, show_approval
from portbook.doors.http.health import health, livez
from portbook.doors.http.home import home
from portbook.doors.http.mcp.endpoint import ROUTE as MCP
from portbook.doors.http.mcp.endpoint import mcp
from portbook.doors.http.mcp.legacy_sse import MESSAGES, SSE, legacy_sse
from portbook.doors.http.mcp.sessions import Sessions
from portbook.doors.http.openapi import DOCS, OPENAPI, docs_page, openapi
from portbook.doors.http.operator.call_routes import CALLS, FIGURES, count_calls, find_calls, show_call
from portbook.doors.http.operator.event_route import EVENTS, follow_calls
from portbook.doors.http.operator.proof_route import PROOF, prove_log
from portbook.doors.http.rest_routes import EXECUTE, TOOLS, execute, tools
from portbook.doors.http.router import Route, Router, Serve
from portbook.doors.http.rpc import ROUTE, rpc

__all__ = ["route_table", "routes_of"]


def routes_of(
    served: App, warn: Callable[[str], None] = lambda _: None, *, has_legacy_sse: bool = False
) -> Router:
    """Return every route, behind the Host and Origin check and CORS."""
    routes = route_table(served, warn, has_legacy_sse=has_legacy_sse)
    return Router(routes, served.hosts, _is_shared)


def route_table(
    served: App, warn: Callable[[str], None] = lambda _: None, *, has_legacy_sse: bool = False
) -> dict[tuple[str, str], Route]:
    """Return every route, by method and path; those of HTTP+SSE only where the operator wants them."""
    boundary, desk = served.boundary, served.approvals
    pages: dict[str, Serve] = {
        "/": home(served.catalog, lambda: served.needs_key),
        DOCS: docs_page(boundary),
        OPENAPI: openapi(boundary),
        APPROVALS: list_approvals(boundary, desk),
        f"{APPROVALS}/{{}}": show_approval(boundary, desk),
        "/health": health(served.checks, served.knows),
        "/readyz": health(served.checks, served.knows),
        "/livez": livez,
    }
    pages |= _operator_pages(served)
    routes: dict[tuple[str, str], Route] = {}
    for path, page in pages.items():
        routes["GET", path] = routes["HEAD", path] = Route(page)
    routes["GET", TOOLS] = tools(boundary)
    routes["POST", f"{TOOLS}/{{}}"] = routes["POST", EXECUTE] = execute(boundary)
    routes["POST", ROUTE] = rpc(boundary)
    routes["POST", f"{APPROVALS}/{{}}"] = decide_approval(boundary, desk)
    sessions = Sessions(boundary, served.sessions, warn)
    served.changes.on_close(sessions.close)
    for method, route in mcp(boundary, sessions).items():
        routes[method, MCP] = route
    if has_legacy_sse:
        routes |= legacy_sse(boundary, sessions.is_known, served.changes.on_close)
    return routes


def _operator_pages(served: App) -> dict[str, Serve]:
    """Return what operators ask for; other sites' pages cannot, whichever origins are allowed."""
    boundary, index = served.boundary, CallIndex(served.log_dir)

    def waiting() -> int:
        return len(served.approvals.tickets(State.PENDING))

    return {
        CALLS: find_calls(boundary, index),
        f"{CALLS}/{{}}": show_call(boundary, served.log_dir),
        FIGURES: count_calls(boundary, index, served.clock),
        EVENTS: follow_calls(boundary, index, waiting, served.changes.on_close),
        PROOF: prove_log(boundary, served.log_dir, served.keep_runs),
    }


def _is_shared(path: str) -> bool:
    """Return whether pages of allowed origins may call a path: what callers use, nothing else."""
    return path in (MCP, ROUTE, EXECUTE, TOOLS, OPENAPI, SSE, MESSAGES) or path.startswith(f"{TOOLS}/")
