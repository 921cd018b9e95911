"""`OpenRequests`: the requests under way at one server, and to which of them its messages belong."""

from __future__ import annotations

from typing import Final, NamedTuple

from portbook.model import JSON
from portbook.upstreams.message_meta import related_task
from portbook.upstreams.running_call import RunningCall

__all__ = ["OpenRequest", "OpenRequests"]

# Requests under way at one server, of calls and aside; one beyond that is refused.
_MAX_OPEN: Final = 1024


class OpenRequest(NamedTuple):
    """A request that has no answer yet."""

    method: str
    call: RunningCall
    is_aside: bool
    """Whether it belongs to no call: it keeps no server busy, and nothing of the server belongs to it."""
    is_stream: bool = False
    """Whether it is answered at its end alone, and brings notifications until then."""


class OpenRequests:
    """The open requests of one connection, by their numbers."""

    __slots__ = ("_aside", "_open")

    def __init__(self) -> None:
        self._open: dict[int, OpenRequest] = {}
        self._aside = 0

    @property
    def is_busy(self) -> bool:
        """Return whether one of them belongs to a call."""
        return len(self._open) > self._aside

    def is_full(self, *, is_aside: bool) -> bool:
        """Return whether there are as many of calls, or aside, as there may be."""
        return (self._aside if is_aside else len(self._open) - self._aside) >= _MAX_OPEN

    def __contains__(self, number: int) -> bool:
        return number in self._open

    def put(self, request: OpenRequest) -> None:
        """Add a request."""
        self._open[request.call.number] = request
        self._aside += request.is_aside

    def take(self, number: JSON) -> OpenRequest | None:
        """Remove and return the request of this number; None where there is none."""
        found = self._open.pop(number, None) if type(number) is int else None
        if found is not None:
            self._aside -= found.is_aside
        return found

    def take_all(self) -> list[OpenRequest]:
        """Remove and return all of them."""
        taken, self._open, self._aside = list(self._open.values()), {}, 0
        return taken

    def call_of(self, stream: int | None, params: JSON) -> RunningCall | None:
        """Return the call that a message belongs to: its stream's, its task's, or the only one under way."""
        if stream is not None and stream in self._open:
            return self._open[stream].call
        task = related_task(params)
        of_task = (each.call for each in self._open.values() if task is not None and each.call.task == task)
        return next(of_task, None) or self.only()

    def call_under(self, token: JSON) -> RunningCall | None:
        """Return the call whose progress has this token: the number of its first request."""
        if type(token) is not int:
            return None
        found = self._open.get(token)
        if found is not None:
            return found.call
        return next((each.call for each in self._open.values() if each.call.token == token), None)

    def only_answerable(self) -> RunningCall | None:
        """Return the one request that an answer without an id can be meant for: a call, or one aside."""
        waiting = [each.call for each in self._open.values() if not each.is_stream]
        return self.only() or (waiting[0] if len(waiting) == 1 else None)

    def only(self) -> RunningCall | None:
        """Return the one call that is under way; None where there are several.

        What is for one client never goes to a different one. Of several calls of one client it is, in turn:

        1. One that is no task: what is of a task names it.
        2. The one that waits for no answer: a call that waits most likely asks no more meanwhile.
        3. The one whose round has not ended, which may ask several things at once.
        """
        calls = [each.call for each in self._open.values() if not each.is_aside]
        if len(calls) > 1 and len({call.owner for call in calls}) == 1:
            calls = [call for call in calls if call.task is None] or calls
            silent = [call for call in calls if not call.is_asking]
            calls = silent or [call for call in calls if not call.is_between_rounds]
        return calls[0] if len(calls) == 1 else None
