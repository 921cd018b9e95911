"""The MCP servers that settings name, put together with what calls them and what serves their tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from portbook.app.learned_secrets import learn_secrets
from portbook.app.tools_from_settings import Collected
from portbook.executors.dispatch import Dispatch
from portbook.executors.mcp_server import McpServerExecutor
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.model import Kind
from portbook.pipeline import Pipeline
from portbook.protocol.conformance import SchemaValidator
from portbook.tools.toolset import Changed
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.trust import Trust

__all__ = ["fleet_of"]


def fleet_of(
    collected: Collected,
    executor: Dispatch,
    validator: SchemaValidator,
    changes: ChangeFeed,
    environ: Mapping[str, str],
    pipeline: Pipeline,
    trust: Trust,
    warn: Callable[[str], None],
) -> Fleet:
    """Return the MCP servers behind the boundary; `executor` calls them from now on."""

    def tell(text: str) -> None:
        redactor = pipeline.rules.redactor
        warn(text if redactor is None else redactor.redact_text(text))

    def publish(kind: Kind, uri: str | None) -> None:
        changes.publish(Changed(kind, uri))

    fleet = Fleet(
        collected.servers,
        validator=validator,
        trust=trust,
        shelf=collected.catalog,
        environ=environ,
        publish=publish,
        tell=tell,
        notice=lambda _: learn_secrets(pipeline, executor),
    )
    executor.servers = McpServerExecutor(fleet)
    return fleet
