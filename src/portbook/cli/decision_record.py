"""The record of an operator's decision on the command line."""

from __future__ import annotations

from portbook.access.callers import OPERATOR
from portbook.audit.journal import Journal
from portbook.audit.records import Trail, both_views
from portbook.clock import SystemClock
from portbook.ids import RandomIds
from portbook.model import Arrival, Call, CallerContext, Done
from portbook.settings import Settings

__all__ = ["note_decision"]

_METHOD = "approvals.decide"


def note_decision(settings: Settings, approval_id: str, decision: str) -> None:
    """Write the decision on an approval to the log, as the HTTP door does.

    Raises `OSError` where the log cannot be written.
    """
    clock, ids = SystemClock(), RandomIds().name(b"")
    call = Call(Arrival("cli", "approvals"), _METHOD, None, {}, 0, CallerContext(), None, b"")
    trail = Trail(OPERATOR, approval=approval_id, operator_said=decision)
    done, ts = Done(b"null"), clock.now()
    journal = Journal(settings.log_dir, started=ts, run=ids[0][:8].decode(), keep=settings.keep_runs)
    try:
        journal.write(*both_views(call, done, ids, trail, ts.encode(), 0, deterministic=False))
    finally:
        journal.close()
