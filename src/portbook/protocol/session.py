"""What a connection has agreed on. Pure: no I/O."""

from __future__ import annotations

from portbook.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE, REVISIONS, Revision

__all__ = ["Session", "negotiate"]


def negotiate(requested: str) -> Revision:
    """Return the revision to speak: the one asked for where it has a handshake, else the newest that has."""
    return REVISIONS[requested] if requested in HANDSHAKE_REVISIONS else NEWEST_HANDSHAKE


class Session:
    """One connection's handshake: none yet, or the revision that it settled."""

    __slots__ = ("revision",)

    def __init__(self) -> None:
        self.revision: Revision | None = None

    def agree(self, revision: Revision) -> None:
        """Note what `initialize` settled."""
        self.revision = revision
