"""`GET /operator/proof`: whether the log is whole, up to which record, and which calls have no outcome."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from portbook.app.running_app import App
from portbook.audit.checkpoint_and_log_verification import (
    CoveredLog,
    lost_calls,
    proof_data,
    verified_streams,
    verify_checkpoints,
    written_files,
)
from portbook.audit.checkpoints_made_and_stored import CheckpointStore, log_name
from portbook.doors.http.operator.operator_route import question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Serve
from portbook.model import JSON

__all__ = ["PROOF", "prove_log"]

PROOF: Final = "/operator/proof"


def prove_log(served: App) -> Serve:
    """Return what verifies the whole log; one verification at a time, because it reads all of it."""
    verifying = asyncio.Lock()

    def verified() -> dict[str, Any]:
        log_dir = served.log_dir
        covered = CheckpointStore(served.store).covered()  # before the records, which grow meanwhile
        name = log_name(log_dir, spans_machines=served.store.spans_machines)
        log = CoveredLog(covered, name, written_files(log_dir))
        verdicts = verified_streams(log_dir, served.keep_runs, (), log)
        checkpoints, uncovered = verify_checkpoints(covered), log.uncovered_in(verdicts)
        return proof_data(verdicts, lost_calls(log_dir), checkpoints, uncovered)

    async def answer(_request: InboundRequest) -> JSON:
        async with verifying:
            found = await asyncio.to_thread(verified)
        signer = served.rules.enclosing.signer
        return {**found, "signing_key": None if signer is None else signer.key_id}

    return question(served.boundary, PROOF, "log.verify", answer)
