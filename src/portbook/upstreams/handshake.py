"""Finds out which revision a server speaks, and agrees on it.

1. `server/discover` is asked once. Only a server that lists 2026-07-28 there, or answers with an error code
   that only this revision has, is of the era without a handshake.
2. Every other answer means the handshake era: `initialize`, with the newest revision that has one. The server
   may choose an older one of ours.
3. No answer, and a refusal for other reasons (credentials, load), say nothing: this connection is made with a
   handshake, and the next one asks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from portbook.errors import REASONS, Reason
from portbook.model import JSONObject
from portbook.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, REVISIONS, STATELESS_REVISIONS
from portbook.upstreams.answer_checks import BadAnswer, RpcError
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.request_meta import CLIENT_INFO, client_capabilities, meta_for
from portbook.upstreams.transport import BadStatus, ConnectionLost, NotSent, SaysNothing

__all__ = ["Era", "Unspeakable", "shake_hands"]

_STATELESS: Final = REVISIONS[STATELESS_REVISIONS[-1]]
# A server of the handshake era that ignores what comes before `initialize` costs this once.
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
    connection: UpstreamConnection, era: Era, may_ask: frozenset[str], timeout_s: float
) -> None:
    """Agree on a revision, and learn what the server offers.

    Raises `Unspeakable` where the server's answer cannot be used, and as a request does.
    """
    if era.is_stateless is not False and await _discover(connection, era, min(timeout_s, _DISCOVER_S)):
        return
    asked: JSONObject = {
        "protocolVersion": NEWEST_HANDSHAKE.name,
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
        raise Unspeakable(f"its answer to initialize is wrong: {first.pointer}: {first.message}") from None
    named = result.get("protocolVersion")
    if named not in HANDSHAKE_REVISIONS:
        raise Unspeakable("it chose a revision that Portbook does not speak")
    connection.agree(REVISIONS[str(named)])
    _keep(connection, result)
    connection.notify("notifications/initialized")
    if "logging" in connection.capabilities:
        connection.hear_everything()  # each client says for itself what it wants to hear


async def _discover(connection: UpstreamConnection, era: Era, timeout_s: float) -> bool:
    """Return whether the server is of the era without a handshake, and remember what it said."""
    params: JSONObject = {"_meta": meta_for(_STATELESS)}
    connection.agree(_STATELESS)
    try:
        result = await connection.request("server/discover", params, timeout_s)
    except RpcError as error:
        era.is_stateless = error.code in _MODERN_ERRORS
        if era.is_stateless:
            raise Unspeakable(f"it refused server/discover with the error {error.code}") from None
        return False
    except BadAnswer:
        era.is_stateless = False
        return False
    except (SaysNothing, TimeoutError):
        return False
    except BadStatus:
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


def _keep(connection: UpstreamConnection, result: JSONObject) -> None:
    capabilities, words = result.get("capabilities"), result.get("instructions")
    connection.capabilities = capabilities if isinstance(capabilities, dict) else {}
    connection.instructions = words if isinstance(words, str) else None
