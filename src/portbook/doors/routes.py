"""Every route of the HTTP door, in one place."""

from __future__ import annotations

from collections.abc import Callable

from portbook.assembly import Assembled
from portbook.doors.approvals import APPROVALS, decide_approval, list_approvals, show_approval
from portbook.doors.asgi import App, guarded, route
from portbook.doors.front import behind_front
from portbook.doors.health import health, livez
from portbook.doors.home import home
from portbook.doors.mcp_http import ROUTE as MCP
from portbook.doors.mcp_http import mcp
from portbook.doors.mcp_sessions import Sessions
from portbook.doors.openapi import DOCS, OPENAPI, docs_page, openapi
from portbook.doors.rest import EXECUTE, TOOLS, execute, execute_tool, tools
from portbook.doors.rpc import ROUTE, rpc

__all__ = ["routes_of"]


def routes_of(served: Assembled, warn: Callable[[str], None] = lambda _: None) -> App:
    """Return the application with every route; a page is guarded here, what takes a message guards itself."""
    boundary, desk, hosts = served.boundary, served.approvals, served.hosts
    pages = {
        "/": home(served.catalog, lambda: served.needs_key),
        DOCS: docs_page(boundary),
        OPENAPI: openapi(boundary),
        APPROVALS: list_approvals(boundary, desk),
        f"{APPROVALS}/{{}}": show_approval(boundary, desk),
        "/health": health(served.checks, served.knows),
        "/readyz": health(served.checks, served.knows),
        "/livez": livez,
    }
    routes: dict[tuple[str, str], App] = {}
    for path, page in pages.items():
        routes["GET", path] = routes["HEAD", path] = guarded(page, hosts)
    routes["GET", TOOLS] = tools(boundary, hosts)
    routes["POST", f"{TOOLS}/{{}}"] = execute_tool(boundary, hosts)
    routes["POST", EXECUTE] = execute(boundary, hosts)
    routes["POST", ROUTE] = rpc(boundary, hosts)
    routes["POST", f"{APPROVALS}/{{}}"] = decide_approval(boundary, desk, hosts)
    sessions = Sessions(boundary, served.sessions, warn)
    served.notices.on_close(sessions.close)
    for verb, app in mcp(boundary, sessions, hosts).items():
        routes[verb, MCP] = app
    return behind_front(route(routes), hosts, _is_shared)


def _is_shared(path: str) -> bool:
    """Return whether pages of other sites, where allowed, may call a path: what callers do, no more."""
    return path in (MCP, ROUTE, EXECUTE, TOOLS, OPENAPI) or path.startswith(f"{TOOLS}/")
