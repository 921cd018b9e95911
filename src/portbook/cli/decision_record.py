"""The record of an operator's decision on the command line."""

from __future__ import annotations

from portbook.access.callers import OPERATOR
from portbook.app.store_from_settings import store_of
from portbook.app.usable_settings import signer_of
from portbook.audit.checkpoint_maker import CheckpointMaker
from portbook.audit.journal import Journal
from portbook.clock import Clock, SystemClock
from portbook.ids import RandomIds
from portbook.model import Arrival, Call, CallerContext, Done
from portbook.settings import Settings
from portbook.stages.recorder import both_views
from portbook.stages.state import Trail
from portbook.stores.checkpoints import CheckpointStore

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
        journal.collect()
        journal.write(*both_views(call, done, ids, trail, ts.encode(), 0, deterministic=False))
        if settings.checkpoint_s:
            _cover(journal, settings, clock)
    finally:
        journal.close()


def _cover(journal: Journal, settings: Settings, clock: Clock) -> None:
    """Cover the record by a checkpoint.

    Raises `OSError` where that cannot be stored.
    """
    store = store_of(settings)
    try:
        maker = CheckpointMaker(
            journal,
            CheckpointStore(store),
            settings.log_dir,
            clock,
            lambda: signer_of(settings),
            settings.checkpoint_s,
        )
        maker.collect()
        covered = maker.cover(is_last=True)
        if covered is not None:
            maker.settle(covered)
    finally:
        store.close()
