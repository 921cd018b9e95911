"""Finds out which revision a server speaks, agrees on it, and asks what it offers.

1. `server/discover` is asked once. Only a server that lists 2026-07-28 there, or answers with an error code
   that only this revision has, is of the era without a handshake.
2. Every other answer means the handshake era: `initialize`, with the newest revision that has one. The server
   may choose an older one of ours.
3. A refusal for other reasons (credentials, load) says nothing: this connection is made with a handshake, and
   the next one asks again.
4. A server that does not answer for long is starting, or ignores what it does not know. It is asked to
   `initialize`, too, and then its answers tell: those of one stream come in order. One that lists 2026-07-28
   and refuses `initialize` has begun without a handshake, and goes on so. One that accepts both, or ends at
   either, is connected to again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from portbook.errors import REASONS, Reason
from portbook.model import JSONObject
from portbook.protocol.revisions_and_methods import (
    HANDSHAKE_REVISIONS,
    NEWEST_HANDSHAKE,
    REVISIONS,
    STATELESS_REVISIONS,
)
from portbook.upstreams.connection_and_server_questions import Events, UpstreamConnection
from portbook.upstreams.listed_definitions import Offer, TooMany, observe
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.message_checks_and_meta import (
    CLIENT_INFO,
    AnswerChecks,
    BadAnswer,
    RpcError,
    client_capabilities,
    meta_for,
)
from portbook.upstreams.running_call import RunningCall
from portbook.upstreams.transport import BadStatus, ConnectionLost, NotSent, SaysNothing, UpstreamLink

__all__ = ["Era", "Introduction", "Offered", "Unspeakable", "shake_hands", "words_of"]

_STATELESS: Final = REVISIONS[STATELESS_REVISIONS[-1]]
# A server of the handshake era that ignores what comes before `initialize` costs this once. Programs that are
# fetched when they are started take longer. At most half of the time for a start: `initialize` comes next.
_DISCOVER_S: Final = 3.0

_MODERN_ERRORS: Final = frozenset(
    REASONS[reason].mcp.code_in(_STATELESS.name)
    for reason in (Reason.HEADER_MISMATCH, Reason.MISSING_CAPABILITY, Reason.UNSUPPORTED_REVISION)
)


class Unspeakable(Exception):
    """A server with which no revision could be agreed on; the message says why."""


class RefusedHandshake(Unspeakable):
    """A server that answered `initialize` with an error."""

    def __init__(self, code: int) -> None:
        super().__init__(f"it refused initialize with the error {code}")
        self.is_modern = code in _MODERN_ERRORS


@dataclass(slots=True)
class Era:
    """What is known of a server's era; kept between its connections."""

    is_stateless: bool | None = None
    """None until it is known."""


async def shake_hands(
    connection: UpstreamConnection,
    era: Era,
    may_ask: frozenset[str],
    timeout_s: float,
    wanted: str | None = None,
) -> None:
    """Agree on a revision, the `wanted` one if the settings name it, and learn what the server offers.

    Raises `Unspeakable` where the server's answer cannot be used, and as a request does.
    """
    asked, patience_s = None, min(timeout_s / 2, _DISCOVER_S)
    if era.is_stateless is not False:
        asked = _discover(connection)
        await asyncio.wait((asked.result,), timeout=timeout_s if era.is_stateless else patience_s)
        if asked.result.done():
            if _learn(connection, era, asked):
                return
            asked = None
        elif era.is_stateless:
            raise TimeoutError
    try:
        await _initialize(connection, may_ask, timeout_s, wanted)
    except RefusedHandshake as refused:
        if asked is None or not await _goes_on_without(connection, era, asked, refused, patience_s):
            raise
        connection.agree(_STATELESS)
        return
    except (Unspeakable, ConnectionLost, NotSent):
        if asked is not None:
            _learn_late(connection, era, asked)
        raise
    if asked is not None and _learn_late(connection, era, asked):
        raise Unspeakable("it needs no handshake, and is asked again without one")


def _discover(connection: UpstreamConnection) -> RunningCall:
    connection.agree(_STATELESS)
    asked = connection.request_aside("server/discover", {"_meta": meta_for(_STATELESS)})
    if asked is None:
        raise NotSent("it has ended")
    return asked


async def _initialize(
    connection: UpstreamConnection, may_ask: frozenset[str], timeout_s: float, wanted: str | None
) -> None:
    asked: JSONObject = {
        "protocolVersion": wanted if wanted in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE.name,
        "capabilities": client_capabilities(may_ask),
        "clientInfo": CLIENT_INFO,
    }
    connection.agree(NEWEST_HANDSHAKE)
    try:
        result = await connection.request("initialize", asked, timeout_s)
    except RpcError as error:
        raise RefusedHandshake(error.code) from None
    except BadAnswer as error:
        first = error.findings[0]
        place = first.pointer or "(root)"
        raise Unspeakable(f"its answer to initialize is wrong: {place}: {first.message}") from None
    named = result.get("protocolVersion")
    if named not in HANDSHAKE_REVISIONS:
        raise Unspeakable("it chose a revision that Portbook does not speak")
    connection.agree(REVISIONS[str(named)])
    _keep(connection, result)
    connection.notify("notifications/initialized")
    if "logging" in connection.capabilities:
        connection.hear_everything()  # each client says for itself what it wants to hear


def _learn(connection: UpstreamConnection, era: Era, asked: RunningCall) -> bool:
    """Return whether the server is of the era without a handshake, and remember what it said."""
    try:
        result = asked.result.result()
    except RpcError as error:
        era.is_stateless = error.code in _MODERN_ERRORS
        if era.is_stateless:
            raise Unspeakable(f"it refused server/discover with the error {error.code}") from None
        return False
    except SaysNothing:
        return False
    except (BadAnswer, BadStatus):
        era.is_stateless = False
        return False
    except (ConnectionLost, NotSent):
        era.is_stateless = False  # it does not bear the question; the next connection does not ask it
        raise
    versions = result.get("supportedVersions")
    era.is_stateless = isinstance(versions, list) and _STATELESS.name in versions
    if era.is_stateless:
        _keep(connection, result)
    return era.is_stateless


async def _goes_on_without(
    connection: UpstreamConnection, era: Era, asked: RunningCall, refused: RefusedHandshake, patience_s: float
) -> bool:
    """Return whether a server that refused a handshake has said, or says now, that it needs none.

    One that refuses as only such a server does, and says nothing, is asked once more by the next connection.
    """
    if refused.is_modern:
        await asyncio.wait((asked.result,), timeout=patience_s)
        if not asked.result.done():
            connection.forget(asked)
            era.is_stateless = True
            return False
    return _learn_late(connection, era, asked)


def _learn_late(connection: UpstreamConnection, era: Era, asked: RunningCall) -> bool:
    """Return whether the server has said that it needs no handshake, now that it has answered `initialize`.

    Raises `Unspeakable` where it has refused the question as only such a server does.
    """
    if asked.result.done():
        with contextlib.suppress(ConnectionLost, NotSent):
            return _learn(connection, era, asked)
        return False
    connection.forget(asked)
    if not connection.link.knows_requests:
        era.is_stateless = False  # in one stream, an answer to what came first would be there by now
    return False


def _keep(connection: UpstreamConnection, result: JSONObject) -> None:
    capabilities, words = result.get("capabilities"), result.get("instructions")
    connection.capabilities = capabilities if isinstance(capabilities, dict) else {}
    connection.instructions = words if isinstance(words, str) else None


# `Introduction`: how a connection to a server begins, so that calls may use it.
#
# A revision is agreed on, and the server says what it offers, before the first call.

# Takes what a server offers, with the notifications of changed lists that came before.
Offered = Callable[[Offer, frozenset[str]], Awaitable[None]]


class Introduction:
    """Begins the connections to one server, and remembers its era between them."""

    def __init__(
        self,
        declared: DeclaredUpstream,
        make_link: Callable[[], UpstreamLink],
        checks: AnswerChecks,
        close: Callable[[UpstreamConnection], asyncio.Task[None]],
    ) -> None:
        """Begin connections over links of `make_link`; `close` begins to close one that failed."""
        self._declared = declared
        self._make_link = make_link
        self._checks = checks
        self._close = close
        self.forget()

    def forget(self) -> None:
        """Ask the server anew what it speaks, with the next connection."""
        named = self._declared.revision
        # Whoever has the transport of 2024-11-05 alone has a handshake.
        has_handshake = self._declared.transport == "sse" or (named and REVISIONS[named].has_handshake)
        self._era = Era(False if has_handshake else None if named is None else True)

    async def connect(self, events: Events, offered: Offered) -> UpstreamConnection:
        """Return a connection that is ready for calls; one that a first question ended gets a second try.

        `offered` is told what the server offers.

        Raises `NotSent` with the reason.
        """
        is_known = self._era.is_stateless is not None
        try:
            return await self._introduced(events, offered)
        except NotSent:
            if is_known or self._era.is_stateless is None:
                raise
        try:
            return await self._introduced(events, offered)
        except NotSent:
            self.forget()  # what it seemed to be may have been part of the failure
            raise

    async def _introduced(self, events: Events, offered: Offered) -> UpstreamConnection:
        declared, link = self._declared, self._make_link()
        timeout_s = declared.timeout_ms / 1000
        connection = UpstreamConnection(link, self._checks, events)
        try:
            async with asyncio.timeout(timeout_s):
                await connection.open()
                await shake_hands(connection, self._era, declared.may_ask, timeout_s, declared.revision)
                offer = await observe(declared.alias, connection, timeout_s)
            await offered(offer, frozenset())  # before a call can use the connection
        except BaseException as error:
            closing, problem = self._close(connection), words_of(error, connection, declared)
            if problem is None:
                raise
            await asyncio.wait((closing,))  # its last words come at its end
            raise NotSent(problem, link.last_words) from None
        return connection


def words_of(error: BaseException, connection: UpstreamConnection, declared: DeclaredUpstream) -> str | None:
    """Return what happened, without a word of the server; None for what is no fault of its."""
    method = connection.last_question
    asked = "" if method is None else f" {method}"
    if isinstance(error, TimeoutError):
        return f"it did not answer{asked} within {declared.timeout_ms} ms"
    if isinstance(error, RpcError):
        return f"it answered{asked} with the error {error.code}"
    if isinstance(error, BadAnswer):
        first = error.findings[0]
        told = "its answer" if method is None else f"its answer to {method}"
        return f"{told} breaks the protocol: {first.pointer or '(root)'}: {first.message}"
    if isinstance(error, NotSent | ConnectionLost | Unspeakable | TooMany):
        return str(error)
    return None
