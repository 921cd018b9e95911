"""`GET /operator/proof`: whether the log is whole, up to which record, and which calls have no outcome."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from portbook.audit.verified_log import lost_calls, proof_data, verified_streams
from portbook.boundary import Boundary
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.router import Serve
from portbook.model import JSON

__all__ = ["PROOF", "prove_log"]

PROOF: Final = "/operator/proof"


def prove_log(boundary: Boundary, log_dir: Path, keep: int) -> Serve:
    """Return what verifies the whole log; one verification at a time, because it reads all of it."""
    verifying = asyncio.Lock()

    def verified() -> JSON:
        return proof_data(verified_streams(log_dir, keep), lost_calls(log_dir))

    async def serve(request: InboundRequest) -> Reply:
        async def act() -> JSON:
            async with verifying:
                return await asyncio.to_thread(verified)

        return reply_to(await boundary.operate("log.verify", arrival_of(request.head, PROOF), act))

    return serve
