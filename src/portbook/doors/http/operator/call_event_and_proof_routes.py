"""What operators read: `/operator/calls`, `/operator/figures`, `/operator/events`, `/operator/proof`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from portbook.app.running_app import App
from portbook.audit.call_index_filters_and_figures import (
    BadFilter,
    CallIndex,
    CallRow,
    call_figures,
    call_filter,
    moment_of,
    position_of,
)
from portbook.audit.call_records import call_data, outcome_of, records_of_call
from portbook.audit.checkpoint_and_log_verification import (
    CoveredLog,
    lost_calls,
    proof_data,
    verified_streams,
    verify_checkpoints,
    written_files,
)
from portbook.audit.checkpoints_made_and_stored import CheckpointStore, log_name
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader_and_follower import Located
from portbook.boundary import Boundary
from portbook.canonical import json_bytes
from portbook.clock import Clock
from portbook.doors.http.mcp.kept_events_and_stream_limits import SILENCE_S
from portbook.doors.http.operator.operator_route import asked, bad_parameter, question
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, Write, lines_of, reply_to
from portbook.doors.http.router import Serve
from portbook.errors import REASONS, Reason, Refused
from portbook.model import JSON, JSONObject

__all__ = [
    "CALLS",
    "EVENTS",
    "FIGURES",
    "PROOF",
    "count_calls",
    "find_calls",
    "follow_calls",
    "prove_log",
    "show_call",
    "upstream_counts",
]

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


# `GET /operator/events`: calls, waiting approvals and MCP servers as they change, as server-sent events.
#
# It is read with the operator key in a header, so not by an `EventSource`: no key is ever part of an
# address.

EVENTS: Final = "/operator/events"

_POLL_S: Final = 0.3
# A stream that fell behind is told how many calls it missed.
_MOST_AT_ONCE: Final = 200

_HEADERS: Final = lines_of(
    [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
)


def follow_calls(
    boundary: Boundary,
    index: CallIndex,
    waiting: Callable[[], int],
    upstreams: Callable[[], JSONObject],
    on_close: Callable[[Callable[[], None]], object],
) -> Serve:
    """Return what streams the calls that end from now on, how many approvals wait, and how servers do.

    `on_close` is told what ends the streams when the server ends.
    """
    closing = asyncio.Event()
    on_close(closing.set)

    async def serve(request: InboundRequest) -> Reply:
        async def act() -> JSON:
            return {}

        answer = await boundary.operate("calls.follow", arrival_of(request.head, EVENTS), act)
        if answer.status != 200:
            return reply_to(answer)

        async def stream(write: Write) -> None:
            seen = _Seen(await asyncio.to_thread(index.rows))
            told: dict[str, JSONObject] = {}
            quiet_s = 0.0
            while not closing.is_set():
                rows = seen.new(await asyncio.to_thread(index.rows))
                if rows:
                    await write(_event("calls", _calls(rows)))
                states: dict[str, JSONObject] = {
                    "waiting": {"waiting": await asyncio.to_thread(waiting)},
                    "upstreams": upstreams(),
                }
                for name, state in states.items():
                    if told.get(name) != state:
                        told[name] = state
                        await write(_event(name, state))
                quiet_s = 0.0 if rows else quiet_s + _POLL_S
                if quiet_s >= SILENCE_S:
                    quiet_s = 0.0
                    await write(b": still here\n\n")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await closing.wait()

        return Reply(200, _HEADERS, stream=stream)

    return serve


class _Seen:
    """Which calls a stream has told of: those up to the newest, by time and id."""

    def __init__(self, rows: list[CallRow]) -> None:
        self._newest = rows[-1] if rows else None

    def new(self, rows: list[CallRow]) -> list[CallRow]:
        """Return the calls after the newest one that was seen."""
        found: list[CallRow] = []
        for row in reversed(rows):
            if row is self._newest:
                break
            found.append(row)
        if found:
            self._newest = rows[-1]
        return found[::-1]


def _calls(rows: list[CallRow]) -> JSONObject:
    newest = rows[-_MOST_AT_ONCE:]
    return {"calls": [row.as_data() for row in newest], "missed": len(rows) - len(newest)}


def _event(name: str, data: JSONObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), json_bytes(data))


def upstream_counts(served: App) -> JSONObject:
    """Return how many MCP servers there are, have failed and were restarted, and how much is withheld."""
    statuses = [] if served.servers is None else served.servers.statuses()
    return {
        "servers": len(statuses),
        "ready": sum(each.state == "ready" for each in statuses),
        "failed": sum(each.state == "failed" for each in statuses),
        "restarts": sum(each.restarts for each in statuses),
        "withheld": sum(each.withheld for each in statuses),
    }


# `GET /operator/proof`: whether the log is whole, up to which record, and which calls have no outcome.

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
