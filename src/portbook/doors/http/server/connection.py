"""One connection of a client: its requests, one after the other, under deadlines and limits.

    first byte ▶ head ▶ body ▶ answer ▶ idle ▶ head …

A client that does not read is not read from: while a request is being answered, or much of an answer waits
to be read, no further request is taken, and soon no further byte. An answer that was given before its request
had come whole is the last of its connection.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from portbook.doors.http.body_limits import MAX_DISCARDED_BYTES, cut_off
from portbook.doors.http.request import Headers
from portbook.doors.http.response import HeldReply, Replied, Reply
from portbook.doors.http.router import Handling, begin_reply, finish_reply, released
from portbook.doors.http.server.admission import Place
from portbook.doors.http.server.bad_request import BadRequest
from portbook.doors.http.server.client_input import ClientInput
from portbook.doors.http.server.client_output import ClientOutput
from portbook.doors.http.server.deadlines import NEVER, Phase
from portbook.doors.http.server.hall import Hall
from portbook.doors.http.server.head_parser import ParsedHead
from portbook.doors.http.server.peer_address import normal_address
from portbook.doors.http.server.request_reader import RequestReader
from portbook.doors.http.server.response_writer import (
    CONTINUE,
    bad_request,
    busy,
    connection_headers,
    document,
    is_last,
)
from portbook.errors import Reason, Refused
from portbook.executors.eager_task import start_now
from portbook.wire.lines import OVERSIZE, Frame

__all__ = ["ServerConnection"]

_TASK: Final = "portbook-request"

# Requests that are taken from one connection before the others have their turn.
_MAX_IN_A_ROW: Final = 4

_AT_REST: Final = (Phase.FIRST_BYTE, Phase.IDLE)
# Nothing is lost if a connection in one of these phases is closed for a different one.
_GIVES_WAY: Final = (Phase.FIRST_BYTE, Phase.IDLE, Phase.DRAIN)
_BEFORE_ANSWER: Final = (Phase.FIRST_BYTE, Phase.HEAD, Phase.BODY, Phase.IDLE)


class ServerConnection(asyncio.Protocol):
    """One connection."""

    _transport: asyncio.Transport
    _in: ClientInput
    _out: ClientOutput
    _parsed: ParsedHead
    _handling: Handling
    _reader: RequestReader

    def __init__(self, hall: Hall) -> None:
        self.deadline = NEVER
        self._hall = hall
        self._phase = Phase.CLOSING
        self._place = Place.NONE
        self._seconds = hall.seconds
        self._address: str | None = None
        self._client: str | None = None
        self._task: asyncio.Task[None] | None = None
        self._discarded = 0
        self._awaits_turn = False
        self._closes = False
        self._has_rest = False

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, or be turned away."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        self._in, self._out = ClientInput(self._transport), ClientOutput(self._transport)
        self._reader = self._in.reader
        peer: object = transport.get_extra_info("peername")
        # A Unix socket has no address, and is its owner's alone.
        self._address = normal_address(str(cast("Any", peer)[0])) if isinstance(peer, tuple) else None
        self._hall.enter(self)
        self._place = self._hall.admission.place(self, self._address)
        if self._place is Place.NONE:
            self._out.write(busy(self._hall.date))
            self._close()
            return
        if self._place is Place.RESERVE:
            self._seconds = self._hall.reserve_seconds
        self._enter(Phase.FIRST_BYTE)

    def data_received(self, data: bytes) -> None:
        """Read on, or keep what has come for later."""
        phase = self._phase
        if phase is Phase.DRAIN:
            self._discarded += len(data)
            if self._discarded > MAX_DISCARDED_BYTES:
                self.abort()
        elif phase is not Phase.CLOSING:
            self._reader.feed(data)
            self._advance()
            if self._is_waiting:
                self._in.hold_back()
            if self._hall.turn.is_full:
                self._hall.turn.end()

    def eof_received(self) -> bool:
        """Take the end of what the client sends as its leaving."""
        self._give_up()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what was for this client alone, and leave when it has ended."""
        self._give_up()
        self._hall.admission.leave(self, self._place, self._address)
        self._place = Place.NONE
        if self._task is None:
            self._hall.leave(self)
        else:
            self._task.add_done_callback(lambda _: self._hall.leave(self))

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self._out.is_stuck = True
        self.deadline = self._hall.now + self._hall.deadlines.write_s

    def resume_writing(self) -> None:
        """Go on where the client has read."""
        self._enter(self._phase)
        self._out.resume()
        self._advance()

    # -- what the hall asks for

    def expire(self) -> None:
        """End the phase whose time is over."""
        if self._out.is_stuck or self._phase not in _BEFORE_ANSWER:
            self.abort()
        elif self._phase is Phase.BODY:
            self._closes = self._has_rest = True
            self._serve(Refused(Reason.FRAME_TOO_SLOW))
        else:
            self._close()

    def stop(self) -> None:
        """Finish the request that is being sent or answered, and close."""
        if self._phase in (Phase.BODY, Phase.ANSWER):
            self._closes = True
        elif self._phase in _BEFORE_ANSWER:
            self._close()

    def give_way(self) -> None:
        """Close at once, for a different connection."""
        self._hall.admission.leave(self, self._place, self._address)
        self._place = Place.NONE
        self.abort()

    def abort(self) -> None:
        """Close at once, whatever is left to write."""
        self._enter(Phase.CLOSING)
        self._transport.abort()

    # -- reading

    @property
    def _is_waiting(self) -> bool:
        """Return whether no further request is taken now."""
        return self._phase is Phase.ANSWER or self._out.is_stuck or self._awaits_turn

    def _advance(self) -> None:
        """Take requests while there are whole ones and the client reads its answers, a few at a time."""
        taken = 0
        try:
            while self._phase in _BEFORE_ANSWER and not self._is_waiting and self._take():
                taken += 1
                if taken >= _MAX_IN_A_ROW and self._reader.unread_bytes:
                    self._await_turn()
        except BadRequest as error:
            self._refuse(bad_request(error, self._hall.date))
        if not self._is_waiting:
            self._in.read_on()

    def _await_turn(self) -> None:
        self._awaits_turn = True
        asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._awaits_turn = False
        self._advance()
        if self._hall.turn.is_full:
            self._hall.turn.end()

    def _take(self) -> bool:
        """Take a head or a body; return whether there was a whole one."""
        if self._phase is Phase.BODY:
            return self._take_body()
        parsed = self._reader.read_head()
        if parsed is not None:
            self._take_head(parsed)
            return True
        if self._phase in _AT_REST and self._reader.unread_bytes:
            self._enter(Phase.HEAD)
        return False

    def _take_head(self, parsed: ParsedHead) -> None:
        hall = self._hall
        is_served = self._place is Place.USUAL or hall.is_reserved(parsed.head.path)
        client = hall.client_of(parsed.head, self._address)
        if not is_served or not hall.admission.count(client):
            self._refuse(busy(hall.date))
            return
        self._client = client
        self._parsed = parsed
        self._handling = handling = parsed.head.derive(hall.router.handle)
        self._closes = not parsed.keeps_alive or hall.is_stopping
        if handling.takes_message:
            self._enter(Phase.BODY)
            if not self._take_body() and parsed.expects_continue and not self._reader.has_begun_body:
                self._out.write(CONTINUE)
            return
        if not self._reader.skip_body():
            self._closes = self._has_rest = True
        self._serve(b"")

    def _take_body(self) -> bool:
        body = self._reader.read_body()
        if body is None:
            return False
        if body is OVERSIZE:
            self._closes = self._has_rest = True
        self._serve(body)
        return True

    # -- answering

    def _serve(self, body: Frame | Refused) -> None:
        """Answer a request: at once, at the end of the loop's turn, or in a task that waits."""
        self._enter(Phase.ANSWER)
        replied = begin_reply(self._handling, self._parsed.head, body)
        if isinstance(replied, HeldReply):
            self._hall.turn.add(self, replied)
        elif isinstance(replied, Reply) and replied.stream is None:
            self._write(replied)
            self._answered()
        else:
            self._start(replied)

    def release(self, held: HeldReply) -> None:
        """Send a reply whose record is written."""
        reply = released(held)
        if reply.stream is not None and self._phase is Phase.ANSWER:
            self._start(reply)
            return
        self._write(reply)
        self._answered()
        if self._reader.unread_bytes and not self._is_waiting:
            self._await_turn()

    def _start(self, replied: Replied) -> None:
        task = start_now(self._answer(replied), _TASK)
        if task.done():
            self._ended(task)
        else:
            self._task = task
            task.add_done_callback(self._resume)

    async def _answer(self, replied: Replied) -> None:
        reply = await finish_reply(replied)
        if reply.stream is None:
            self._write(reply)
        elif self._phase is Phase.ANSWER:
            await self._out.send(reply, self._headers_beside(reply), self._hall.date, self._parsed.head)

    def _write(self, reply: Reply) -> None:
        """Write a reply that is there whole, unless the client has left."""
        if self._phase is Phase.ANSWER:
            is_head = self._parsed.head.method == "HEAD"
            more = self._headers_beside(reply)
            self._out.write(document(reply, more, self._hall.date, is_head=is_head))

    def _headers_beside(self, reply: Reply) -> Headers:
        head, more = self._parsed.head, self._handling.more
        self._closes = self._closes or is_last(reply, more, head)
        return connection_headers(more, head, is_last=self._closes)

    def _resume(self, task: asyncio.Task[None]) -> None:
        self._task = None
        self._ended(task)
        self._advance()

    def _ended(self, task: asyncio.Task[None]) -> None:
        is_whole = not task.cancelled() and task.exception() is None
        if not is_whole and self._phase is Phase.ANSWER:
            self.abort()  # a part of a stream may be written
        self._answered()

    def _answered(self) -> None:
        """Go on after an answer: with the next request, or to the end."""
        if self._client is not None:
            self._hall.admission.discount(self._client)
            self._client = None
        if self._phase is not Phase.ANSWER:
            return  # the client has left
        if self._has_rest:
            self._drain()
        elif self._closes:
            self._close()
        else:
            self._enter(Phase.IDLE)

    # -- closing

    def _refuse(self, answer: bytes) -> None:
        """Answer what is not taken; what follows it is not read either."""
        self._out.write(answer)
        self._drain()

    def _drain(self) -> None:
        """Discard what still comes for a while, so that the client gets to read its answer."""
        self._reader.clear()
        self._enter(Phase.DRAIN)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _close(self) -> None:
        """Close once everything is written."""
        self._enter(Phase.CLOSING)
        self._transport.close()

    def _give_up(self) -> None:
        """Take notice that the client has left."""
        phase = self._phase
        has_begun = phase is Phase.BODY and self._reader.has_begun_body
        self._enter(Phase.CLOSING)
        self._reader.clear()
        if self._task is not None:
            self._task.cancel()
        elif has_begun:
            replied = begin_reply(self._handling, self._parsed.head, cut_off())
            task = start_now(self._answer(replied), _TASK)  # recorded, and told to nobody
            self._task = None if task.done() else task

    # -- phases

    def _enter(self, phase: Phase) -> None:
        """Wait for something else from now on, until its deadline."""
        if phase in _GIVES_WAY:
            if self._place is Place.USUAL:
                self._hall.admission.idle[self] = None
        elif self._phase in _GIVES_WAY:
            self._hall.admission.idle.pop(self, None)
        self._phase = phase
        self.deadline = self._hall.now + self._seconds[phase]
