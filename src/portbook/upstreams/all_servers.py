"""`Fleet`: every MCP server behind the boundary, what of theirs is served, and how they are doing."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final

from portbook.model import Call, Kind
from portbook.net.destinations import Destinations
from portbook.net.http_client import HttpClient
from portbook.protocol.message_validation import SchemaValidator
from portbook.protocol.mirrored_headers import Mark
from portbook.upstreams.http_transport import HttpTransport
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.message_checks_and_meta import AnswerChecks
from portbook.upstreams.secret_values import GivenSecrets, ValueReader
from portbook.upstreams.served_offers import ServedOffers, Shelf, without_secrets
from portbook.upstreams.sse_transport import SseTransport
from portbook.upstreams.stdio_server_process import StdioTransport, child_environment
from portbook.upstreams.supervisor import ServerStatus, Supervisor, Watcher
from portbook.upstreams.transport import NotSent, UpstreamLink
from portbook.upstreams.trust_by_lock import Trust, Withheld

__all__ = ["Fleet"]

# How long the first list waits for servers that start slowly; they are listed when they are there. A call
# waits for as long as a server takes to start that may serve it.
_SETTLE_S: Final = 10.0


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
        patience_s: float | None = _SETTLE_S,
    ) -> None:
        """Serve what `trust` approves from `shelf`.

        `publish` is told of changed lists and resources, `tell` of what concerns the operator, `notice` of
        every secret value. Servers with an address are called with `client`. A first list waits `patience_s`;
        None is as long as a start may take.
        """
        self.offers = ServedOffers(trust, shelf, lambda kind: publish(kind, None), tell)
        """What the servers offer, and what of it is served."""
        self._shelf = shelf
        self._environ = environ
        self._publish = publish
        self._tell = tell
        self._client = client
        self._patience_s = patience_s
        self._destinations = Destinations()
        self._secrets = GivenSecrets(notice)
        self._watched: Counter[str] = Counter()
        self._left_out: dict[str, tuple[str, ...]] = {}
        self._validator = validator
        self._servers = {each.alias: self._supervised(each) for each in declared}
        if any(each.declared.transport != "stdio" for each in self._servers.values()):
            self._client = client or HttpClient()  # now: it imports TLS
        for server in self._servers.values():
            if server.declared.start == "lazy":
                server.has_offered = self.offers.put_known(server.declared)
        self._settling: asyncio.Task[None] | None = None
        self._late: dict[str, asyncio.Task[None]] = {}
        self.is_settled = not self._servers
        """Whether every server has said once what it offers, or failed to, or is late."""

    def __getitem__(self, alias: str) -> Supervisor:
        return self._servers[alias]

    def __contains__(self, alias: str) -> bool:
        return alias in self._servers

    def start(self) -> None:
        """Start the servers that are wanted at all times, and serve what is approved from now on."""
        self.offers.watch()
        if any(each.declared.start == "eager" for each in self._servers.values()):
            self._settling = self._settling or asyncio.get_running_loop().create_task(self._settle())

    async def settle(self) -> None:
        """Wait until every server has said what it offers, or failed to, or is too slow."""
        if not self.is_settled:
            self._settling = self._settling or asyncio.get_running_loop().create_task(self._settle())
            await asyncio.shield(self._settling)

    def late_servers_of(self, call: Call) -> Callable[[], Coroutine[Any, Any, object]] | None:
        """Return a wait for the servers that may turn out to serve what `call` names, None where none may.

        It ends when they have said what they offer, or failed to.
        """
        name = call.tool
        if not self._late or name is None or call.flaw is not None or self._shelf.serves(name, call.kind):
            return None
        starts = [start for alias, start in self._late.items() if self._may_serve(alias, name)]
        return partial(asyncio.wait, starts) if starts else None

    def watch(self, uri: str) -> Callable[[], None]:
        """Hear of changes of a resource while a server offers it; return the function that stops it."""
        self._watched[uri] += 1
        self._ask_for_changes_of(uri)
        return lambda: self._unwatch(uri)

    def is_of_others(self, alias: str, uri: str) -> bool:
        """Return whether someone else than a server offers the resource at exactly this address."""
        located = self._shelf.locate(uri)
        return located is not None and located[0] == uri and self._shelf.server_of(uri) != alias

    def end_session(self, session: str) -> None:
        """End the processes that only a session had, which has ended."""
        for server in self._servers.values():
            server.end_session(session)

    async def restart(self, alias: str) -> None:
        """Start a server again. Raises `NotSent` where it cannot be started."""
        await self._servers[alias].restart()

    def permit(self, destinations: Destinations) -> None:
        """Set where connections may go, from now on."""
        self._destinations = destinations

    def secrets(self) -> list[str]:
        """Return every secret value that a server was given."""
        return self._secrets.values()

    def declared(self) -> dict[str, DeclaredUpstream]:
        """Return what the settings say of each server, by alias."""
        return {alias: server.declared for alias, server in self._servers.items()}

    def statuses(self) -> list[ServerStatus]:
        """Return how each server is doing, ordered by name."""
        return [self._status(alias) for alias in sorted(self._servers)]

    def withheld(self) -> list[Withheld]:
        """Return every definition that is not approved."""
        return [each for alias in sorted(self._servers) for each in self.offers.withheld_of(alias)]

    def left_out(self) -> list[str]:
        """Return what servers list and nothing can be done with, as sentences."""
        return [f"mcp.{alias}: {each}" for alias, found in self._left_out.items() for each in found]

    def missing(self) -> list[str]:
        """Return the servers that could not be asked yet what they offer."""
        return sorted(alias for alias, each in self._servers.items() if not each.has_offered)

    def problems(self) -> dict[str, str | None]:
        """Return why each server does not work, None where it does or is not running."""
        return {alias: each.last_error for alias, each in self._servers.items()}

    async def close(self) -> None:
        """End every server, side by side."""
        if self._settling is not None:
            self._settling.cancel()
            await asyncio.wait((self._settling,))
        await self.offers.close()
        await asyncio.gather(*(each.close() for each in self._servers.values()))
        if self._client is not None:
            await self._client.close()

    # --

    def _ask_for_changes_of(self, uri: str) -> None:
        located = self._shelf.locate(uri)
        alias = None if located is None else self._shelf.server_of(located[0])
        if alias is not None:
            self._servers[alias].watch(uri)

    def _updated(self, alias: str, uri: str) -> None:
        """Pass on that a resource has changed, if somebody watches it and it is the server's own."""
        located = self._shelf.locate(uri) if uri in self._watched else None
        if located is not None and self._shelf.server_of(located[0]) == alias:
            self._publish("resource", uri)

    def _unwatch(self, uri: str) -> None:
        self._watched[uri] -= 1
        if not self._watched[uri]:
            del self._watched[uri]
            for server in self._servers.values():
                server.unwatch(uri)

    async def _settle(self) -> None:
        starts = {
            asyncio.get_running_loop().create_task(_started(each)): alias
            for alias, each in self._servers.items()
            if not each.has_offered
        }
        if starts:
            _, late = await asyncio.wait(starts, timeout=self._patience_s)
            for start in late:
                self._late[starts[start]] = start
                start.add_done_callback(partial(self._is_late_no_more, starts[start]))
        self.is_settled = self.offers.has_listed = True

    def _is_late_no_more(self, alias: str, _start: asyncio.Task[None]) -> None:
        del self._late[alias]

    def _may_serve(self, alias: str, name: str) -> bool:
        """Return whether `name` can be a name of something that a server offers."""
        # In canonical and listed names, characters of the alias can be different ones.
        has_prefix = self._servers[alias].declared.has_prefix
        return not has_prefix or _letters_of(name).startswith(_letters_of(alias))

    def _status(self, alias: str) -> ServerStatus:
        server = self._servers[alias]
        return ServerStatus(
            alias,
            server.declared.transport,
            server.state,
            server.revision,
            self.offers.tools_of(alias),
            len(self.offers.withheld_of(alias)),
            server.last_error,
            server.restarts,
        )

    def _supervised(self, declared: DeclaredUpstream) -> Supervisor:
        tell = partial(self._tell_of, declared.alias)
        checks = AnswerChecks(self._validator, is_enforced=declared.is_enforced, warn=tell)

        async def offered(process: object, offer: Offer, announced: frozenset[str]) -> None:
            # Long lists take a while, which no call has to wait for.
            told = await asyncio.to_thread(without_secrets, offer, self._secrets.hide)
            self._tell_of_left_out(declared.alias, told.left_out)
            await self.offers.take(declared, told, announced, process)
            for uri in self._watched:
                self._ask_for_changes_of(uri)

        ended = partial(self.offers.end, declared.alias)
        watcher = Watcher(offered, ended, partial(self._updated, declared.alias), tell)
        return Supervisor(declared, partial(self._link, declared, tell), checks, watcher)

    def _link(self, declared: DeclaredUpstream, tell: Callable[[str], None]) -> UpstreamLink:
        place = f"mcp.{declared.alias}"
        if declared.transport == "stdio":
            values = ValueReader(f"{place}.env", declared.env, self._environ, declared.folder, self._secrets)

            async def environment() -> Mapping[str, str]:
                return child_environment(self._environ, await values.read())

            return StdioTransport(declared, environment, tell, self._secrets.redact)
        assert declared.url is not None
        assert self._client is not None
        headers = ValueReader(
            f"{place}.headers", declared.headers, self._environ, declared.folder, self._secrets
        )
        if declared.transport == "sse":
            return SseTransport(declared.url, headers, self._client, lambda: self._destinations)
        marks = partial(self._marks_of, declared.alias)
        return HttpTransport(declared.url, headers, self._client, lambda: self._destinations, marks)

    def _marks_of(self, alias: str, name: str) -> tuple[Mark, ...]:
        """Return the arguments that a tool wants in headers, by the server's own name of it."""
        return self.offers.marks_of(alias, name)

    def _tell_of_left_out(self, alias: str, sentences: tuple[str, ...]) -> None:
        before, self._left_out[alias] = self._left_out.get(alias), sentences
        if sentences != before:
            for sentence in sentences:
                self._tell_of(alias, sentence)

    def _tell_of(self, alias: str, text: str) -> None:
        self._tell(f"mcp.{alias}: {text}")


def _letters_of(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


async def _started(server: Supervisor) -> None:
    with contextlib.suppress(NotSent):  # the server's status says why, and it is tried again
        await server.connected()
