"""`CommitProof`: what tells whether a transaction was committed when the answer to COMMIT was lost.

The number of a transaction tells nothing after a crash of the server, which gives the same number to a later
one. So each transaction that writes leaves a random value in a row of its writer, right before COMMIT. To ask
for it, the row is locked, which waits for a transaction that is still in progress.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from portbook.stores.postgres.bounded_connection import BoundedConnection

__all__ = ["CommitProof"]

_BYTES: Final = 16

# Only in a transaction that has written, because only such a one has a number.
_LEAVE: Final = (
    b"INSERT INTO commit_proof (writer, value, written_at) "
    b"SELECT %s, %s, extract(epoch FROM clock_timestamp()) * 1000000 "
    b"WHERE pg_current_xact_id_if_assigned() IS NOT NULL "
    b"ON CONFLICT (writer) DO UPDATE SET value = excluded.value, written_at = excluded.written_at RETURNING 1"
)
# Where there is no row, one is put there: an INSERT that is in progress is waited for as well.
_ASK: Final = (
    b"INSERT INTO commit_proof (writer, value, written_at) VALUES (%s, '', 0) "
    b"ON CONFLICT (writer) DO UPDATE SET value = commit_proof.value RETURNING value"
)
# Of processes that ended long ago. Who misses its row does not know the outcome, which is safe.
_SWEEP: Final = (
    b"DELETE FROM commit_proof WHERE writer IN (SELECT writer FROM commit_proof "
    b"WHERE written_at < extract(epoch FROM clock_timestamp()) * 1000000 - 86400000000 "
    b"FOR UPDATE SKIP LOCKED)"
)


class CommitProof:
    """The proofs of one writer: one transaction after the other."""

    def __init__(self, draw: Callable[[int], bytes] = os.urandom) -> None:
        """Draw names and values by `draw`."""
        self._draw = draw
        self._writer = draw(_BYTES).hex()
        self._known: str | None = None
        """The value of the last transaction that was certainly committed."""
        self._value = ""

    def leave(self, connection: BoundedConnection) -> bool:
        """Return whether the transaction has written anything; if so, leave a proof. Right before COMMIT."""
        self._value = self._draw(_BYTES).hex()
        has_written = connection.plain(_LEAVE, (self._writer, self._value)).get is not None
        if has_written and self._known is None:
            connection.plain(_SWEEP)
        return has_written

    def confirm(self) -> None:
        """Note that the transaction was committed."""
        self._known = self._value

    def ask(self, connection: BoundedConnection) -> bool | None:
        """Return whether the transaction was committed; None where this database cannot tell.

        It was not where the value of the transaction before is still there. Any other value, or none, is that
        of a database that is older, or a different one.

        Raises `psycopg.Error`, also where the transaction is still in progress after a while.
        """
        connection.begin(is_write=True)
        try:
            value = str(connection.plain(_ASK, (self._writer,)).get)
        finally:
            connection.roll_back()
        if value == self._value:
            return True
        return False if value == self._known else None

    def forget(self) -> None:
        """Go on under a new name: a transaction that is unknown may still hold the row."""
        self._writer = self._draw(_BYTES).hex()
        self._known = None
