"""`GET /operator/calls`, `/operator/calls/ID` and `/operator/figures`: recorded calls, found and counted."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from portbook.audit.call_index_filters_and_figures import (
    BadFilter,
    CallIndex,
    call_figures,
    call_filter,
    moment_of,
    position_of,
)
from portbook.audit.call_records import call_data, outcome_of, records_of_call
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader import Located
from portbook.boundary import Boundary
from portbook.clock import Clock
from portbook.doors.http.operator.operator_route import asked, bad_parameter, question
from portbook.doors.http.request import InboundRequest
from portbook.doors.http.router import Serve
from portbook.errors import REASONS, Reason, Refused
from portbook.model import JSON

__all__ = ["CALLS", "FIGURES", "count_calls", "find_calls", "show_call"]

CALLS: Final = "/operator/calls"
FIGURES: Final = "/operator/figures"

_PAGE: Final = 100
_MAX_PAGE: Final = 1000
_BUCKETS: Final = 60
_MAX_BUCKETS: Final = 500
# What figures are about without `since`.
_HOUR_S: Final = 3600
# The least that figures with `fit` are about: fewer minutes than buckets would be a picture of noise.
_FITTED_S: Final = 300


def find_calls(boundary: Boundary, index: CallIndex) -> Serve:
    """Return what lists the newest calls that match the filters of the query, page by page.

    `next` in the answer is the `before` of the next page. It names a line of the log, not only a time:
    pages lose no call, however many end in the same millisecond.
    """

    async def answer(request: InboundRequest) -> JSON:
        query = asked(request)
        limit = _whole(query, "limit", _PAGE, _MAX_PAGE)
        before = query.pop("before", None)
        try:
            is_wanted = call_filter(query)
            end = None if before is None else position_of("before", before)
        except BadFilter as error:
            raise bad_parameter(error.name, error.problem) from None
        found = await asyncio.to_thread(index.newest, is_wanted, limit, end)
        following = found[-1].cursor if len(found) == limit else None
        return {"calls": [row.as_data() for row in found], "next": following}

    return question(boundary, CALLS, "calls.list", answer)


def show_call(boundary: Boundary, log_dir: Path) -> Serve:
    """Return what shows every record of one call, and its outcome."""

    async def answer(request: InboundRequest) -> JSON:
        found = await asyncio.to_thread(_records, log_dir, request.segment)
        if found is None:
            raise Refused(Reason.RECORD_UNKNOWN)
        return found

    return question(boundary, CALLS, "calls.show", answer)


def count_calls(boundary: Boundary, index: CallIndex, clock: Clock) -> Serve:
    """Return what counts calls and their latencies between two times, the last hour if none are named.

    With `fit`, they begin with the first call that matches: an hour does not fill a corner of a day.
    """

    async def answer(request: InboundRequest) -> JSON:
        query = asked(request)
        buckets = _whole(query, "buckets", _BUCKETS, _MAX_BUCKETS)
        is_fitted = _whole(query, "fit", 0, 1, least=0) == 1
        try:
            until = moment_of("until", query.pop("until", clock.now()))
            since = moment_of("since", query.pop("since", _before(until, _HOUR_S)))
            is_wanted = call_filter(query)
        except BadFilter as error:
            raise bad_parameter(error.name, error.problem) from None
        if since >= until:
            raise bad_parameter("since", "must be before until")

        def counted() -> JSON:
            rows = [row for row in index.rows() if since <= row.at < until and is_wanted(row)]
            start = max(since, min(rows[0].at, _before(until, _FITTED_S))) if is_fitted and rows else since
            return call_figures(rows, start, until, buckets)

        return await asyncio.to_thread(counted)

    return question(boundary, FIGURES, "calls.count", answer)


def _records(log_dir: Path, request_id: str) -> JSON:
    found = records_of_call(log_dir, request_id)
    if not any(found.values()):
        return None
    return {**call_data(request_id, found, outcome_of(log_dir, found)), "says": _sentence(found)}


def _sentence(found: dict[str, list[Located]]) -> str | None:
    """Return what the reason of a call without a result says to people."""
    executions = found[EXECUTION_STREAM]
    reason = executions[-1].record.get("error_class") if executions else None
    # A log may be older than its reader, or younger.
    return REASONS[Reason(reason)].sentence if reason in Reason.__members__ else None


def _whole(query: dict[str, str], name: str, default: int, most: int, least: int = 1) -> int:
    text = query.pop(name, str(default))
    if not (text.isdecimal() and least <= int(text[:9]) <= most):
        raise bad_parameter(name, f"must be a whole number from {least} to {most}")
    return int(text)


def _before(moment: str, seconds: int) -> str:
    return moment_of("until", (datetime.fromisoformat(moment) - timedelta(seconds=seconds)).isoformat())
