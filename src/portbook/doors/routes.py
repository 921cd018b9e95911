"""Every route of the HTTP door, in one place."""

from __future__ import annotations

from portbook.assembly import Assembled
from portbook.doors.approvals import APPROVALS, decide_approval, list_approvals, show_approval
from portbook.doors.asgi import App, guarded, route
from portbook.doors.health import health, livez
from portbook.doors.home import home
from portbook.doors.openapi import DOCS, OPENAPI, docs_page, openapi
from portbook.doors.rest import EXECUTE, TOOLS, execute, execute_tool, tools
from portbook.doors.rpc import ROUTE, rpc

__all__ = ["routes_of"]


def routes_of(served: Assembled, *, is_exposed: bool) -> App:
    """Return the application with every route; a page is guarded here, what takes a message guards itself."""
    boundary, desk = served.boundary, served.approvals
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
        routes["GET", path] = routes["HEAD", path] = guarded(page, is_exposed=is_exposed)
    routes["GET", TOOLS] = tools(boundary, is_exposed=is_exposed)
    routes["POST", f"{TOOLS}/{{}}"] = execute_tool(boundary, is_exposed=is_exposed)
    routes["POST", EXECUTE] = execute(boundary, is_exposed=is_exposed)
    routes["POST", ROUTE] = rpc(boundary, is_exposed=is_exposed)
    routes["POST", f"{APPROVALS}/{{}}"] = decide_approval(boundary, desk, is_exposed=is_exposed)
    return route(routes)
