"""Whether each part works: what `/health` and `/readyz` report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from portbook.clock import Clock

if TYPE_CHECKING:
    from portbook.audit.shipping.shipping_task import ShippingTask
    from portbook.executors.http import HttpExecutor
    from portbook.stores.store_port import StorePort
    from portbook.upstreams.all_servers import Fleet

__all__ = ["HealthChecks", "is_healthy"]

_PROBE_S: Final = 2.0
_PROBE_KEPT_S: Final = 5.0

# Failed checks that leave the rest healthy: one API or MCP server that fails does not take the server down.
# Records that are not shipped are in their files.
_HARMLESS: Final = ("gateway:", "mcp:", "shipping")


class _Recording(Protocol):
    @property
    def is_recording(self) -> bool: ...


class _Sink(Protocol):
    def look(self) -> None: ...
    def mend(self) -> None: ...


class HealthChecks:
    """Checks the store, the records and their shipping, the schemas, the gateways and the MCP servers."""

    def __init__(
        self,
        store: StorePort,
        sink: _Sink,
        pipeline: _Recording,
        http: HttpExecutor | None,
        gateways: Sequence[str],
        clock: Clock,
        servers: Fleet | None = None,
        shipping: ShippingTask | None = None,
    ) -> None:
        self._store = store
        self._sink = sink
        self._pipeline = pipeline
        self._http = http
        self._gateways = gateways
        self._clock = clock
        self._servers = servers
        self._shipping = shipping
        self._probed: tuple[float, Mapping[str, str]] | None = None

    async def problems(self, deep: bool) -> Mapping[str, str | None]:
        """Return the problem of each part, None if it works; `deep` for gateways and MCP servers, too."""
        found: dict[str, str | None] = {
            "store": await _problem_of_store(self._store),
            "audit": _problem(self._sink.look if self._pipeline.is_recording else self._sink.mend),
            "schemas": None,  # every contract was compiled before the server started
        }
        if self._shipping is not None:
            found["shipping"] = self._shipping.problem
        if deep and self._http is not None:
            unreachable = await self._unreachable(self._http)
            found |= {f"gateway:{name}": unreachable.get(name) for name in self._gateways}
        if deep and self._servers is not None:
            found |= {f"mcp:{alias}": problem for alias, problem in self._servers.problems().items()}
        return found

    async def _unreachable(self, http: HttpExecutor) -> Mapping[str, str]:
        """Return the gateways that cannot be reached, and why; a result is kept for a few seconds."""
        now = self._clock.tick()
        if self._probed is None or now - self._probed[0] > _PROBE_KEPT_S:
            self._probed = (now, await http.unreachable(_PROBE_S))
        return self._probed[1]


def is_healthy(found: Mapping[str, str | None]) -> bool:
    """Return whether nothing failed that takes the server down."""
    return all(problem is None or name.startswith(_HARMLESS) for name, problem in found.items())


async def _problem_of_store(store: StorePort) -> str | None:
    try:
        await store.check()
    except OSError as error:
        return error.strerror or str(error)
    return None


def _problem(check: Callable[[], None]) -> str | None:
    try:
        check()
    except OSError as error:
        return error.strerror or str(error)
    return None
