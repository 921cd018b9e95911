"""`Introduction`: how a connection to a server begins, so that calls may use it.

A revision is agreed on, and the server says what it offers, before the first call.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from portbook.protocol.revisions import REVISIONS
from portbook.upstreams.answer_checks import AnswerChecks, BadAnswer, RpcError
from portbook.upstreams.connection import Events, UpstreamConnection
from portbook.upstreams.declared_upstream import DeclaredUpstream
from portbook.upstreams.definitions import Offer, TooMany, observe
from portbook.upstreams.handshake import Era, Unspeakable, shake_hands
from portbook.upstreams.transport import ConnectionLost, NotSent, UpstreamLink

__all__ = ["Introduction", "Offered", "words_of"]

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
