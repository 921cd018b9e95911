"""Every route of the HTTP door, in one place."""

from __future__ import annotations

from collections.abc import Callable

from portbook.app.assemble import App
from portbook.doors.http.approvals import APPROVALS, decide_approval, list_approvals, show_approval
from portbook.doors.http.asgi import Application, guarded, route
from portbook.doors.http.cors import behind_front
from portbook.doors.http.health import health, livez
from portbook.doors.http.home import home
from portbook.doors.http.mcp.endpoint import ROUTE as MCP
from portbook.doors.http.mcp.endpoint import mcp
from portbook.doors.http.mcp.sessions import Sessions
from portbook.doors.http.openapi import DOCS, OPENAPI, docs_page, openapi
from portbook.doors.http.rest import EXECUTE, TOOLS, execute, execute_tool, tools
from portbook.doors.http.rpc import ROUTE, rpc

__all__ = ["routes_of"]


def routes_of(served: App, warn: Callable[[str], None] = lambda _: None) -> Application:
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
    routes: dict[tuple[str, str], Application] = {}
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
