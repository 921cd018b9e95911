"""Finds out which revision a server speaks, and agrees on it.

1. `server/discover` is asked once. Only a server that lists 2026-07-28 there, or answers with an error code
   that only this revision has, is of the era without a handshake.
2. Every other answer means the handshake era: `initialize`, with the newest revision that has one. The server
   may choose an older one of ours.
3. A refusal for other reasons (credentials, load) says nothing: this connection is made with a handshake, and
   the next one asks again.
4. A server that does not answer for long is starting, or ignores what it does not know. It is asked to
   `initialize`, too, and then its answers tell: those of one stream come in order.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Final

from portbook.errors import REASONS, Reason
from portbook.model import JSONObject
from portbook.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, REVISIONS, STATELESS_REVISIONS
from portbook.upstreams.answer_checks import BadAnswer, RpcError
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.request_meta import CLIENT_INFO, client_capabilities, meta_for
from portbook.upstreams.running_call import RunningCall
from portbook.upstreams.transport import BadStatus, ConnectionLost, NotSent, SaysNothing

__all__ = ["Era", "Unspeakable", "shake_hands"]

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
    asked: RunningCall | None = None
    if era.is_stateless is not False:
        asked = _discover(connection)
        patience_s = timeout_s if era.is_stateless else min(timeout_s / 2, _DISCOVER_S)
        await asyncio.wait((asked.result,), timeout=patience_s)
        if asked.result.done():
            if _learn(connection, era, asked):
                return
            asked = None
        elif era.is_stateless:
            raise TimeoutError
    try:
        await _initialize(connection, may_ask, timeout_s, wanted)
    except Unspeakable:
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
        raise Unspeakable(f"it refused initialize with the error {error.code}") from None
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


def _learn_late(connection: UpstreamConnection, era: Era, asked: RunningCall) -> bool:
    """Return whether the server is of the era without a handshake, now that it has answered `initialize`."""
    if asked.result.done():
        with contextlib.suppress(ConnectionLost, NotSent, Unspeakable):
            return _learn(connection, era, asked)
        return bool(era.is_stateless)
    connection.forget(asked)
    if not connection.link.knows_requests:
        era.is_stateless = False  # in one stream, an answer to what came first would be there by now
    return False


def _keep(connection: UpstreamConnection, result: JSONObject) -> None:
    capabilities, words = result.get("capabilities"), result.get("instructions")
    connection.capabilities = capabilities if isinstance(capabilities, dict) else {}
    connection.instructions = words if isinstance(words, str) else None
