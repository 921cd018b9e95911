"""`RunningCall`: one request under way at a server, and the caller's client for what comes before its answer.

Progress and logs of the server go on to that client. What the server asks waits here for whoever runs the
call, because only that one can ask the client, or end the round to ask it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from portbook.canonical import json_bytes
from portbook.model import JSON, Client, Draft, JSONObject, Run
from portbook.protocol.negotiation import LEVELS

__all__ = ["ReportsBetweenRounds", "RunningCall", "UpstreamQuestion"]

# `ReportsBetweenRounds`: what a server reports while nobody listens, because its caller is asked something.
#
# A client that answers with its next request hears nothing until that request. The newest reports are kept
# for it, within limits: of progress the newest says all.

# As much as waits for a client that reads slowly.
_MAX_REPORTS: Final = 256
_MAX_BYTES: Final = 64 * 1024


class ReportsBetweenRounds:
    """The reports of one call, oldest first."""

    __slots__ = ("_bytes", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[JSONObject], None], JSONObject]] = deque()
        self._bytes = 0

    def put(self, tell: Callable[[JSONObject], None], params: JSONObject) -> None:
        """Keep `params` for `tell`, and drop the oldest reports if there are too many."""
        size = len(json_bytes(params))
        self._waiting.append((size, tell, params))
        self._bytes += size
        while len(self._waiting) > _MAX_REPORTS or self._bytes > _MAX_BYTES:
            self._bytes -= self._waiting.popleft()[0]

    def tell(self) -> None:
        """Pass all of them on."""
        while self._waiting:
            _, tell, params = self._waiting.popleft()
            tell(params)


# What one call may ask at a time; more is a fault of the server.
_MAX_QUESTIONS: Final = 16


class UpstreamQuestion(NamedTuple):
    """A request of a server to its client, and how it is answered."""

    request: JSONObject
    """A method and its params."""
    answer: Callable[[JSONObject], None]
    refuse: Callable[[str], None]
    """Answers with an error, which is for the server: it says why there is no answer."""


class RunningCall:
    """A request at a server."""

    __slots__ = ("_asked", "_kept", "_run", "_waiter", "number", "questions", "result", "task", "token")

    def __init__(
        self, number: int, run: Run | None, result: asyncio.Future[JSONObject], task: str | None = None
    ) -> None:
        self.number = number
        """The id of the request."""
        self.task = task
        """The task at the server whose result is requested, where it is one."""
        self.token = number
        """What the server names the call by when it reports progress: the number of its first request."""
        self._run = run
        self.result = result
        self.questions: list[UpstreamQuestion] = []
        """What the server asked and nobody has answered yet."""
        self._asked = 0
        self._kept: ReportsBetweenRounds | None = None
        """What is reported between two rounds of the call; None during one."""
        self._waiter: asyncio.Future[None] | None = None

    @property
    def owner(self) -> tuple[str | None, str | None] | None:
        """Return whose call it is: the caller and its session."""
        return None if self._run is None else (self._run.caller, self._run.session)

    @property
    def is_asking(self) -> bool:
        """Return whether a question of it has no answer yet."""
        return self._asked > 0

    @property
    def is_between_rounds(self) -> bool:
        """Return whether its caller has yet to come back with answers."""
        return self._kept is not None

    def client(self) -> Client | None:
        """Return the caller's client, where it can be reached."""
        return None if self._run is None else self._run.reach()

    def end_round(self) -> None:
        """Keep what is reported from now on for the next round of the call."""
        self._kept = ReportsBetweenRounds()

    def continue_for(self, run: Run) -> None:
        """Report to a later round of the same call from now on, and first what was reported between."""
        self._run = run
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.tell()

    def progress(self, params: JSONObject) -> None:
        """Pass progress on; the official schema has checked the types."""
        if self._kept is not None:
            self._kept.put(self.progress, params)
            return
        report = None if self._run is None else self._run.report
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if report is not None and isinstance(progress, int | float):
            report(
                progress,
                total if isinstance(total, int | float) else None,
                message if isinstance(message, str) else None,
            )

    def log(self, params: JSONObject) -> None:
        """Pass a log message on, if the client wants its level."""
        client, level, logger = self.client(), params.get("level"), params.get("logger")
        if client is None or not isinstance(level, str) or level not in LEVELS or not client.hears(level):
            return
        if self._kept is not None:
            self._kept.put(self.log, params)
        else:
            data: JSON = params.get("data")
            draft: Draft[JSON] = Draft(len(json_bytes(data)), partial(_given, data))
            client.log(level, draft, logger if isinstance(logger, str) else None)

    def settle(self, result: JSONObject) -> None:
        """End with a result."""
        self.result.set_result(result)
        self._end()

    def fail(self, error: Exception) -> None:
        """End without one."""
        self.result.set_exception(error)
        self.result.exception()  # a call that nobody continues has nobody to take it
        self._end()

    async def hear(self, timeout_s: float) -> bool:
        """Wait for the end or for a question, whichever comes first; return whether one came in time."""
        loop = self.result.get_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_later(timeout_s, _release, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None
        return self.result.done() or bool(self.questions)

    def _end(self) -> None:
        for question in self.take_questions():
            question.refuse("the call has ended")
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None:
            _release(self._waiter)

    def ask(self, question: UpstreamQuestion) -> None:
        """Let a question wait for whoever runs the call."""
        if len(self.questions) >= _MAX_QUESTIONS:
            question.refuse("too much is asked at once")
            return
        self._asked += 1
        self.questions.append(
            UpstreamQuestion(question.request, self._counted(question.answer), self._counted(question.refuse))
        )
        self._wake()

    def _counted(self, reply: Callable[[Any], None]) -> Callable[[Any], None]:
        def replied(given: Any) -> None:
            self._asked -= 1
            reply(given)

        return replied

    def take_questions(self) -> list[UpstreamQuestion]:
        """Take all questions that wait."""
        taken, self.questions = self.questions, []
        return taken


def _release(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _given(data: JSON) -> JSON:
    return data
