"""`Fleet`: every MCP server behind the boundary, what of theirs is served, and how they are doing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final, Protocol

from portbook.canonical import fingerprint
from portbook.model import JSONObject, Kind
from portbook.net.destinations import Destinations
from portbook.net.http_client import HttpClient
from portbook.protocol.conformance import SchemaValidator
from portbook.protocol.headers import BadMark, Mark, marked_params
from portbook.tools.spec import ToolSpec
from portbook.upstreams.answer_checks import AnswerChecks
from portbook.upstreams.child_environment import child_environment
from portbook.upstreams.declared_upstream import DeclaredUpstream
from portbook.upstreams.definitions import Offer
from portbook.upstreams.http_transport import HttpTransport
from portbook.upstreams.offered_specs import specs_of
from portbook.upstreams.server_status import ServerStatus
from portbook.upstreams.stdio_transport import StdioTransport
from portbook.upstreams.supervisor import Supervisor, Watcher
from portbook.upstreams.transport import NotSent, UpstreamLink
from portbook.upstreams.trust import Trust, Withheld
from portbook.upstreams.value_reader import ValueReader

__all__ = ["Fleet", "Shelf"]

# How long the first list waits for servers that start slowly; they are listed when they are there.
_SETTLE_S: Final = 10.0
_LISTED: Final[tuple[Kind, ...]] = ("tool", "resource", "prompt")
# Earlier values of secrets are still redacted; no server changes its credentials more often than this.
_REMEMBERED: Final = 64


class Shelf(Protocol):
    """Where entries of servers are served from: the catalog."""

    def locate(self, uri: str) -> tuple[str, JSONObject] | None:
        """Return the name of the resource at `uri`, and the values of its template's variables, or None."""
        ...

    def server_of(self, resource: str) -> str | None:
        """Return the alias of the server that offers the resource of this name, or None."""
        ...

    def replace(self, source: str, specs: Iterable[ToolSpec]) -> None:
        """Serve `specs` in place of all that came from `source` before."""
        ...


class Fleet:
    """All servers."""

    def __init__(
        self,
        declared: Iterable[DeclaredUpstream],
        *,
        validator: SchemaValidator,
        trust: Trust,
        shelf: Shelf,
        environ: Mapping[str, str],
        publish: Callable[[Kind, str | None], None] = lambda _kind, _uri: None,
        tell: Callable[[str], None] = lambda _: None,
        notice: Callable[[str], None] = lambda _: None,
        client: HttpClient | None = None,
    ) -> None:
        """Serve what `trust` approves from `shelf`.

        `publish` is told of changed lists and resources, `tell` of what concerns the operator, `notice` of
        every secret value. Servers with an address are called with `client`.
        """
        self._trust = trust
        self._shelf = shelf
        self._environ = environ
        self._publish = publish
        self._tell = tell
        self._notice = notice
        self._client = client
        self._destinations = Destinations()
        self._secrets: list[str] = []
        self._withheld: dict[str, tuple[Withheld, ...]] = {}
        self._counts: dict[str, int] = {}
        self._marks: dict[tuple[str, str], tuple[Mark, ...]] = {}
        self._validator = validator
        self._listed: dict[str, dict[Kind, str]] = {}
        self._servers = {each.alias: self._supervised(each) for each in declared}
        self._settling: asyncio.Task[None] | None = None
        self.is_settled = not self._servers
        """Whether every server has been asked once what it offers."""

    def __getitem__(self, alias: str) -> Supervisor:
        return self._servers[alias]

    def __contains__(self, alias: str) -> bool:
        return alias in self._servers

    def start(self) -> None:
        """Start the servers that are wanted at all times."""
        if any(each.declared.start == "eager" for each in self._servers.values()):
            self._settling = self._settling or asyncio.get_running_loop().create_task(self._settle())

    async def settle(self) -> None:
        """Wait until every server has said what it offers, or failed to, or is too slow."""
        if not self.is_settled:
            self._settling = self._settling or asyncio.get_running_loop().create_task(self._settle())
            await asyncio.shield(self._settling)

    def watch(self, uri: str) -> None:
        """Hear of changes of a resource from now on, if one of the servers offers it."""
        located = self._shelf.locate(uri)
        alias = None if located is None else self._shelf.server_of(located[0])
        if alias is not None:
            self._servers[alias].watch(uri)

    async def restart(self, alias: str) -> None:
        """Start a server again. Raises `NotSent` where it cannot be started."""
        await self._servers[alias].restart()

    def permit(self, destinations: Destinations) -> None:
        """Set where connections may go, from now on."""
        self._destinations = destinations

    def secrets(self) -> list[str]:
        """Return every secret value that a server was given."""
        return list(self._secrets)

    def statuses(self) -> list[ServerStatus]:
        """Return how each server is doing, ordered by name."""
        return [self._status(alias) for alias in sorted(self._servers)]

    def withheld(self) -> list[Withheld]:
        """Return every definition that is not approved."""
        return [each for alias in sorted(self._withheld) for each in self._withheld[alias]]

    def problems(self) -> dict[str, str | None]:
        """Return why each server does not work, None where it does or is not running."""
        return {alias: each.last_error for alias, each in self._servers.items()}

    async def close(self) -> None:
        """End every server, side by side."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait((self._settling,))
        await asyncio.gather(*(each.close() for each in self._servers.values()))
        if self._client is not None:
            await self._client.close()

    # --

    async def _settle(self) -> None:
        starts = [
            asyncio.get_running_loop().create_task(_started(each))
            for each in self._servers.values()
            if not each.has_offered
        ]
        if starts:
            await asyncio.wait(starts, timeout=_SETTLE_S)
        self.is_settled = True

    def _status(self, alias: str) -> ServerStatus:
        server = self._servers[alias]
        return ServerStatus(
            alias,
            server.declared.transport,
            server.state,
            server.revision,
            self._counts.get(alias, 0),
            len(self._withheld.get(alias, ())),
            server.last_error,
            server.restarts,
        )

    def _supervised(self, declared: DeclaredUpstream) -> Supervisor:
        tell = partial(self._tell_of, declared.alias)
        checks = AnswerChecks(self._validator, is_enforced=declared.is_enforced, warn=tell)
        watcher = Watcher(partial(self._take_offer, declared), partial(self._publish, "resource"), tell)
        return Supervisor(declared, partial(self._link, declared, tell), checks, watcher)

    def _link(self, declared: DeclaredUpstream, tell: Callable[[str], None]) -> UpstreamLink:
        place = f"mcp.{declared.alias}"
        if declared.transport == "stdio":
            values = ValueReader(f"{place}.env", declared.env, self._environ, declared.folder, self._learn)

            async def environment() -> Mapping[str, str]:
                return child_environment(self._environ, await values.read())

            return StdioTransport(declared, environment, tell)
        assert declared.url is not None
        self._client = self._client or HttpClient()
        headers = ValueReader(
            f"{place}.headers", declared.headers, self._environ, declared.folder, self._learn
        )
        marks = partial(self._marks_of, declared.alias)
        return HttpTransport(declared.url, headers, self._client, lambda: self._destinations, marks)

    def _marks_of(self, alias: str, name: str) -> tuple[Mark, ...]:
        """Return the arguments that a tool wants in headers, by the server's own name of it."""
        return self._marks.get((alias, name), ())

    def _take_offer(self, declared: DeclaredUpstream, offer: Offer, announced: frozenset[str]) -> None:
        judged = self._trust.judge(declared.alias, offer.definitions)
        self._withheld[declared.alias] = judged.withheld
        specs = list(specs_of(declared, judged.served, completes=offer.completes))
        self._counts[declared.alias] = sum(spec.kind == "tool" for spec in specs)
        for spec in specs:
            if spec.kind == "tool" and spec.upstream is not None:
                with contextlib.suppress(BadMark):  # the catalog leaves such a tool out
                    self._marks[declared.alias, spec.upstream.name] = marked_params(spec.input_schema)
        self._shelf.replace(declared.alias, specs)
        self._publish_changes(declared.alias, specs, announced)

    def _publish_changes(self, alias: str, specs: list[ToolSpec], announced: frozenset[str]) -> None:
        """Publish which lists are different now; first ones are news only to clients that listed before."""
        listed: dict[Kind, str] = {
            kind: fingerprint([spec.definition() for spec in specs if spec.kind == kind]) for kind in _LISTED
        }
        before = self._listed.get(alias)
        self._listed[alias] = listed
        for kind in _LISTED:
            is_new = before is None and self.is_settled and any(spec.kind == kind for spec in specs)
            is_announced = any(f"/{kind}s/" in method for method in announced)
            if is_new or is_announced or (before is not None and before[kind] != listed[kind]):
                self._publish(kind, None)

    def _learn(self, secret: str) -> None:
        if secret not in self._secrets:
            self._secrets = [*self._secrets, secret][-_REMEMBERED:]
            self._notice(secret)

    def _tell_of(self, alias: str, text: str) -> None:
        self._tell(f"mcp.{alias}: {text}")


async def _started(server: Supervisor) -> None:
    with contextlib.suppress(NotSent):  # the server's status says why, and it is tried again
        await server.connected()
