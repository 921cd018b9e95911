"""Time and identity, handed to whoever needs them; the one module that reads the system's clock.

`Clock` tells the time, `Ids` names a call. Both are arguments everywhere, so that with fixed ones the same
input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from typing import NamedTuple, Protocol

__all__ = ["Clock", "ContentIds", "Identity", "Ids", "RandomIds", "SystemClock", "is_trace_id", "run_id"]


class Clock(Protocol):
    """Wall time for people, ticks for durations."""

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        ...

    def tick(self) -> float:
        """Return seconds on a clock that never goes back."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ("_prefix", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._prefix = ""

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        second, nanos = divmod(time.time_ns(), 1_000_000_000)
        if second != self._second:  # formatting a date costs more than all the rest of a timestamp
            self._second = second
            self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
        return f"{self._prefix}{nanos // 1_000_000:03d}Z"

    def tick(self) -> float:
        """Return seconds on a clock that never goes back."""
        return time.perf_counter()


_TRACE_DIGITS = 32
_HEX = frozenset("0123456789abcdef")


def is_trace_id(text: str) -> bool:
    """Return whether `text` is a trace as W3C has it: 32 hexadecimal digits in lower case, not all zero."""
    return len(text) == _TRACE_DIGITS and _HEX.issuperset(text) and text != "0" * _TRACE_DIGITS


class Identity(NamedTuple):
    """The names of one call: UUIDs, the trace and the span without dashes."""

    request: str
    trace: str
    span: str

    @property
    def traceparent(self) -> str:
        """Return the W3C header of this call, in which a span has half a UUID's length.

        A trace that its sender named in another form has a number made of that name.
        """
        trace = self.trace.replace("-", "").lower()
        if not is_trace_id(trace):
            trace = hashlib.sha256(self.trace.encode()).hexdigest()[:_TRACE_DIGITS]
        return f"00-{trace}-{self.span[:16]}-01"


class Ids(Protocol):
    """Names calls."""

    deterministic: bool

    def name(self, content: bytes) -> Identity:
        """Return the names of the call with this canonical content."""
        ...


class RandomIds:
    """Names that never repeat: random UUIDs (version 4)."""

    __slots__ = ("_pool",)
    deterministic = False

    # One system call serves this many identities of 48 random bytes each.
    _BATCH = 64

    def __init__(self) -> None:
        self._pool: list[str] = []
        # A forked child must not hand out its parent's names again.
        os.register_at_fork(after_in_child=self._pool.clear)

    def name(self, content: bytes) -> Identity:
        """Return fresh names; the content does not matter."""
        del content
        pool = self._pool
        if not pool:
            drawn = os.urandom(48 * self._BATCH).hex()
            pool.extend(drawn[start : start + 96] for start in range(0, len(drawn), 96))
        digits = pool.pop()
        return Identity(
            f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}",
            f"{digits[32:44]}4{digits[45:48]}a{digits[49:64]}",
            f"{digits[64:76]}4{digits[77:80]}a{digits[81:96]}",
        )


# The root of every deterministic name. Changing it changes every name ever given: never change it.
_NAMESPACE = uuid.UUID("6f0c0a9e-5d0b-5f7e-9a53-3f6f1a5f2b10")


class ContentIds:
    """Names made of the content alone (UUID version 5): the same call has the same names, everywhere.

    They repeat by design, so nothing may use them as a key.
    """

    __slots__ = ()
    deterministic = True

    def name(self, content: bytes) -> Identity:
        """Return the names that this content always has."""
        digest = hashlib.sha256(content).hexdigest()
        return Identity(
            str(uuid.uuid5(_NAMESPACE, f"request:{digest}")),
            uuid.uuid5(_NAMESPACE, f"trace:{digest}").hex,
            uuid.uuid5(_NAMESPACE, f"span:{digest}").hex,
        )


def run_id(content: bytes) -> str:
    """Return the name in provenance of the run that this content tells of: the same content has the same."""
    return str(uuid.uuid5(_NAMESPACE, f"run:{hashlib.sha256(content).hexdigest()}"))
