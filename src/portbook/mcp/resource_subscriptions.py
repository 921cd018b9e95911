"""`resources/subscribe`: the resources that a session watches, within limits. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.protocol.negotiation import Session

__all__ = ["subscribe", "unsubscribe"]

# The most subscriptions of one connection, and their total length; otherwise a client could fill the memory.
_MAX_WATCHED: Final = 1024
_MAX_WATCHED_CHARACTERS: Final = 65_536


def subscribe(session: Session, uri: str) -> bool:
    """Subscribe to a resource; return False where the limit is reached."""
    watched = session.watched
    # One that is watched is noted again: a different process may have been asked to unsubscribe from it.
    if uri not in watched and (
        len(watched) >= _MAX_WATCHED or sum(map(len, watched)) > _MAX_WATCHED_CHARACTERS
    ):
        return False
    session.watch(uri, is_watched=True)
    return True


def unsubscribe(session: Session, uri: str) -> None:
    """Unsubscribe from a resource."""
    session.watch(uri, is_watched=False)
