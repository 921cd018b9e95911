"""One connection of a client: its requests, one after the other, under deadlines and limits.

    first byte ▶ head ▶ body ▶ answer ▶ idle ▶ head …

A client that does not read is not read from: while a request is being answered, or much of an answer waits
to be read, no further request is taken, and soon no further byte. An answer that was given before its request
had come whole is the last of its connection.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from portbook.doors.http.memory_limits import COUNTED_BYTES, MessageMemory, no_room
from portbook.doors.http.request import MAX_DISCARDED_BYTES
from portbook.doors.http.server.answerer_and_flow_control import (
    Answerer,
    ClientInput,
    ClientOutput,
    limit_unsent,
)
from portbook.doors.http.server.connection_limits_deadlines_and_overload import PROMPT, Phase, busy
from portbook.doors.http.server.open_connections import ConnectionState, OpenConnections
from portbook.doors.http.server.peer_address import normal_address
from portbook.doors.http.server.request_parser import BadRequest, RequestReader
from portbook.doors.http.server.response_writer import CONTINUE, bad_request
from portbook.errors import Reason, Refused
from portbook.wire.lines_and_size_limit import OVERSIZE

__all__ = ["ServerConnection"]

# Requests that are taken from one connection before the others have their turn.
_MAX_IN_A_ROW: Final = 4

# Taken from here by name: to find a member of an enumeration takes as long as to call a function.
_FIRST_BYTE: Final = Phase.FIRST_BYTE
_HEAD: Final = Phase.HEAD
_BODY: Final = Phase.BODY
_ANSWER: Final = Phase.ANSWER
_IDLE: Final = Phase.IDLE
_DRAIN: Final = Phase.DRAIN
_CLOSING: Final = Phase.CLOSING

_AT_REST: Final = (_IDLE, _FIRST_BYTE)
_BEFORE_ANSWER: Final = (_IDLE, _FIRST_BYTE, _HEAD, _BODY)


class ServerConnection(asyncio.Protocol):
    """One connection."""

    _transport: asyncio.Transport
    _in: ClientInput
    _out: ClientOutput
    _reader: RequestReader
    _answerer: Answerer

    def __init__(self, shared: OpenConnections) -> None:
        self._shared = shared
        self._state = ConnectionState(self, shared)
        self._client: str | None = None
        self._discarded = 0
        self._awaits_turn = False
        self._has_rest = False
        self._is_holding = False
        self._memory: MessageMemory | None = None
        """What the message takes that is being answered, where that is counted."""

    # -- what the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take a place, or be turned away."""
        if not self._is_admitted(transport):
            self._out.write(busy(self._shared.date))
            self._close()

    def _is_admitted(self, transport: asyncio.BaseTransport) -> bool:
        """Take a place; return whether there is one."""
        self._use(cast("asyncio.Transport", transport))  # uvloop's is no subclass
        limit_unsent(transport)
        peer: object = transport.get_extra_info("peername")
        self._shared.enter(self)
        # A Unix socket has no address, and is its owner's alone.
        address = normal_address(str(cast("Any", peer)[0])) if isinstance(peer, tuple) else None
        return self._state.begin(address)

    def _use(self, transport: asyncio.Transport) -> None:
        """Read from a transport, and write to it."""
        self._transport = transport
        self._in, self._out = ClientInput(transport), ClientOutput(transport)
        self._reader = self._in.reader
        self._answerer = Answerer(self, self._shared, self._state, self._out)

    def data_received(self, data: bytes) -> None:
        """Read on, or keep what has come for later."""
        phase = self._state.phase
        if phase is _DRAIN:
            self._discarded += len(data)
            if self._discarded > MAX_DISCARDED_BYTES:
                self.abort()
        elif phase is not _CLOSING:
            self._reader.feed(data)
            self._go_on()

    def eof_received(self) -> bool:
        """Take the end of what the client sends as its leaving."""
        self._give_up()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what was for this client alone, and leave when it has ended."""
        self._give_up()
        self._state.end()
        self._shared.unread.remove(self)
        self._shared.unfinished.remove(self)
        task = self._answerer.task
        if task is None:
            self._shared.leave(self)
        else:
            task.add_done_callback(lambda _: self._shared.leave(self))

    def pause_writing(self) -> None:
        """Note that the client does not read."""
        self._out.hold()
        self._state.await_reading()
        self._shared.unread.add(self, self._out.held_bytes)

    def resume_writing(self) -> None:
        """Go on where the client has read."""
        self._shared.unread.remove(self)
        self._state.enter(self._state.phase)
        self._out.resume()
        self._go_on()

    # -- what the shared asks for

    @property
    def deadline(self) -> float:
        """Return until when its phase may last, on the loop's clock."""
        return self._state.deadline

    def expire(self) -> None:
        """End the phase whose time is over."""
        if self._out.is_stuck and self._out.has_moved():
            self._state.await_reading()
        elif self._out.is_stuck or self._state.phase not in _BEFORE_ANSWER:
            self.abort()
        elif self._state.phase is _BODY:
            self._end_here()
            self._answerer.answer(Refused(Reason.FRAME_TOO_SLOW))
        else:
            self._close()

    def stop(self, *, after_next: bool = False) -> None:
        """Finish the request that is being sent or answered, and close.

        Without one, close at once; `after_next` waits for one.
        """
        if self._state.phase in (_BODY, _ANSWER):
            self._answerer.closes = True
        elif self._state.phase in _BEFORE_ANSWER and not after_next:
            self._close()

    def give_way(self) -> None:
        """Close at once, for a different connection."""
        self._state.end()
        self.abort()

    def abort(self) -> None:
        """Close at once, whatever is left to write."""
        self._state.enter(_CLOSING)
        self._transport.abort()

    def make_room(self) -> None:
        """Give up what the client is sending, and what it sent ahead."""
        if self._state.phase is _BODY:
            self._end_here()
            self._answerer.answer(no_room())
        elif self._state.phase in _BEFORE_ANSWER:
            self._refuse(busy(self._shared.date))
        else:
            self.abort()

    # -- reading

    @property
    def _is_waiting(self) -> bool:
        """Return whether no further request is taken now."""
        return self._state.phase is _ANSWER or self._out.is_stuck or self._awaits_turn

    def _advance(self) -> None:
        """Take requests while there are whole ones and the client reads its answers, a few at a time."""
        taken, state = 0, self._state
        try:
            while state.phase in _BEFORE_ANSWER and not self._out.is_stuck:
                if not (self._take_body() if state.phase is _BODY else self._take_head()):
                    break
                if self._state.phase is _ANSWER:  # nearly always
                    break
                taken += 1
                if taken >= _MAX_IN_A_ROW and self._reader.unread_bytes:
                    self._await_turn()
                    break
        except BadRequest as error:
            self._refuse(bad_request(error, self._shared.date))
        if self._in.is_paused and not self._is_waiting:
            self._in.read_on()

    def _go_on(self) -> None:
        """Take what has come: at once if there is time, or when it is this connection's turn."""
        turns = self._shared.turns
        if turns.has_time() or (self._state.phase in _AT_REST and self._reader.begins_with(PROMPT)):
            self._advance()
        elif self._reader.unread_bytes and not self._is_waiting:
            self._queue()
        self._note_held()

    def _queue(self) -> None:
        """Wait for a turn, unless that would take too long for a new request."""
        if self._state.phase in _AT_REST:
            if self._shared.turns.is_late:
                self._refuse(busy(self._shared.date))
                return
            self._state.enter(_HEAD)  # it is not idle
        self._await_turn()

    def _await_turn(self) -> None:
        self._awaits_turn = True
        self._shared.turns.wait(self)

    def take_turn(self) -> None:
        """Take a few requests."""
        self._awaits_turn = False
        self._advance()
        self._note_held()

    def _note_held(self) -> None:
        """Count what is held, and read no more if that is much; release answers if many wait."""
        held = 0 if self._reader.is_clear else self._reader.held_bytes
        if held:
            if self._is_waiting:
                self._in.hold_back()
            self._is_holding = True
            self._shared.unfinished.add(self, held)
        elif self._is_holding:
            self._is_holding = False
            self._shared.unfinished.remove(self)
        if self._shared.held.is_full:
            self._shared.held.release()

    def _take_head(self) -> bool:
        """Take a head, and its message if that has come; return whether there was a whole head."""
        parsed = self._reader.read_head()
        if parsed is None:
            if self._state.phase in _AT_REST and self._reader.unread_bytes:
                self._state.enter(_HEAD)
            return False
        head, shared = parsed.head, self._shared
        if not self._state.is_usual or shared.addresses.has_proxies:
            self._client = shared.client_of(head, self._state.address)
            if not self._state.is_served(head.path) or not shared.admission.count(self._client):
                self._client = None
                self._refuse(busy(shared.date))
                return True
        handling = self._answerer.take(head, closes=not parsed.keeps_alive or shared.is_stopping)
        if handling.takes_message:
            if not self._take_body():
                self._state.enter(_BODY)
                if parsed.expects_continue and not self._reader.has_begun_body:
                    self._out.write(CONTINUE)
            return True
        if not self._reader.skip_body():
            self._end_here()
        self._answerer.answer(b"")
        return True

    def _take_body(self) -> bool:
        """Take a message; return whether it has come whole."""
        body = self._reader.read_body()
        if body is None:
            return False
        if body is OVERSIZE:
            self._end_here()
        elif len(body) >= COUNTED_BYTES:
            self._memory = self._shared.workload.take(body)
            if self._memory is None:
                self._answerer.answer(no_room())
                return True
        self._answerer.answer(body, self._memory)
        return True

    def _end_here(self) -> None:
        """Read nothing more: where the next request begins is not known."""
        self._has_rest = self._answerer.closes = True

    # -- after an answer

    def answered(self, *, is_whole: bool = True) -> None:
        """Go on with the next request, or to the end."""
        if self._client is not None:
            self._shared.admission.discount(self._client)
            self._client = None
        if self._memory is not None:
            self._memory.release()
            self._memory = None
        if self._state.phase is not _ANSWER:
            return  # the client has left
        if not is_whole:
            self.abort()
        elif self._has_rest:
            self._drain()
        elif self._answerer.closes:
            self._close()
        else:
            if not self._reader.knows_head:
                self._answerer.forget()
            self._state.enter(_IDLE)

    def take_next(self) -> None:
        """Take the next request when it is this connection's turn, if one has come."""
        if not self._reader.is_clear and self._reader.unread_bytes and not self._is_waiting:
            self._await_turn()

    # -- closing

    def _refuse(self, answer: bytes) -> None:
        """Answer what is not taken; what follows it is not read either."""
        self._out.write(answer)
        self._drain()

    def _drain(self) -> None:
        """Discard what still comes for a while, so that the client gets to read its answer."""
        self._reader.clear()
        self._state.enter(_DRAIN)
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def _close(self) -> None:
        """Close once everything is written."""
        self._state.enter(_CLOSING)
        self._transport.close()

    def _give_up(self) -> None:
        """Take notice that the client has left."""
        has_begun_body = self._state.phase is _BODY and self._reader.has_begun_body
        self._state.enter(_CLOSING)
        self._reader.clear()
        self._answerer.cancel(has_begun_body=has_begun_body)
