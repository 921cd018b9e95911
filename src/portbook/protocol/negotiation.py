"""Determines the revision of a message: from its `_meta`, its header, or the handshake. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSONObject
from portbook.protocol.mirrored_headers import SESSION, VERSION, mismatch, refuse_headers
from portbook.protocol.negotiated_session import Session
from portbook.protocol.revisions import (
    HANDSHAKE_REVISIONS,
    NEWEST_HANDSHAKE,
    REVISIONS,
    STATELESS_REVISIONS,
    Revision,
)

__all__ = ["META_REVISION", "meta_of", "revision_of"]

META_REVISION: Final = "io.modelcontextprotocol/protocolVersion"

_NEWEST: Final = REVISIONS[STATELESS_REVISIONS[-1]]


def revision_of(
    message: JSONObject, session: Session, headers: Mapping[str, str] | None
) -> tuple[Revision, Refused | None]:
    """Return the revision of `message`; where it has none, the one to answer in and the refusal.

    1. The request names one: it must be a revision without a handshake, and match the header.
    2. The header names one without a handshake: then the request should have named it too, and no session.
    3. `initialize` names the one it prefers; it is validated by the one that will be agreed on.
    4. The connection has agreed on one. A header that names a different one with a handshake changes nothing:
       published clients send the newest that they know.
    5. `ping` is allowed before that.
    """
    meta = meta_of(message)
    header = headers.get(VERSION) if headers is not None else None
    if META_REVISION in meta:
        return _named(message, meta[META_REVISION], headers, header)
    if header is not None and header.strip() in STATELESS_REVISIONS:
        is_in_session = headers is not None and SESSION in headers
        refused = mismatch(VERSION, "must be the negotiated revision") if is_in_session else None
        return REVISIONS[header.strip()], refused  # validation will report what is missing
    if header is not None and header not in REVISIONS:
        agreed = session.revision
        spoken = tuple(REVISIONS) if agreed is None else (agreed.name,)
        return agreed or NEWEST_HANDSHAKE, _unsupported(header, spoken)
    if message.get("method") == "initialize" and session.revision is None:
        params = message.get("params")
        wanted = params.get("protocolVersion") if isinstance(params, dict) else None
        return _negotiated(wanted if isinstance(wanted, str) else ""), None
    if session.revision is not None:
        return session.revision, None
    if message.get("method") == "ping" or "id" not in message:
        return NEWEST_HANDSHAKE, None
    finding = Finding("/params/_meta", f"send initialize first, or set {META_REVISION}", "required", "")
    return NEWEST_HANDSHAKE, Refused(Reason.BAD_PARAMS, (finding,))


def meta_of(message: JSONObject) -> JSONObject:
    """Return the `_meta` of a message's params; empty where it is missing or not an object."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


def _named(
    message: JSONObject, named: object, headers: Mapping[str, str] | None, header: str | None
) -> tuple[Revision, Refused | None]:
    if not isinstance(named, str):
        pointer = f"/params/_meta/{META_REVISION.replace('/', '~1')}"
        return _NEWEST, Refused(Reason.BAD_PARAMS, (Finding(pointer, "expected string", "type", ""),))
    if header is not None and header.strip() != named:
        return _NEWEST, refuse_headers(cast("Mapping[str, str]", headers), message, named)
    if named in STATELESS_REVISIONS:
        return REVISIONS[named], None
    return _NEWEST, _unsupported(named)


def _unsupported(named: str, spoken: tuple[str, ...] = STATELESS_REVISIONS) -> Refused:
    details = {"requested": named[:64], "supported": list(spoken)}
    return Refused(Reason.UNSUPPORTED_REVISION, details=details)


def _negotiated(requested: str) -> Revision:
    """Return the requested revision where it has a handshake, otherwise the newest that has one."""
    return REVISIONS[requested] if requested in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE
