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

__all__ = ["Clock", "ContentIds", "Identity", "Ids", "RandomIds", "SystemClock"]


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

    __slots__ = ("_milli", "_prefix", "_second", "_text")

    def __init__(self) -> None:
        self._second = -1
        self._prefix = ""
        self._milli = -1
        self._text = ""

    def now(self) -> str:
        """Return the wall time as ISO 8601 in UTC, with milliseconds."""
        milli = time.time_ns() // 1_000_000
        if milli != self._milli:  # a busy boundary has many calls in one millisecond
            second, rest = divmod(milli, 1000)
            if second != self._second:  # formatting a date costs more than all the rest of a timestamp
                self._second = second
                self._prefix = time.strftime("%Y-%m-%dT%H:%M:%S.", time.gmtime(second))
            self._milli = milli
            self._text = f"{self._prefix}{rest:03d}Z"
        return self._text

    def tick(self) -> float:
        """Return seconds on a clock that never goes back."""
        return time.perf_counter()


class Identity(NamedTuple):
    """The names of one call: UUIDs, the trace and the span without dashes."""

    request: str
    trace: str
    span: str

    @property
    def traceparent(self) -> str:
        """Return the W3C header of this call, in which a span has half a UUID's length."""
        return f"00-{self.trace}-{self.span[:16]}-01"


class Ids(Protocol):
    """Names calls."""

    deterministic: bool

    def name(self, content: bytes) -> Identity:
        """Return the names of the call with this canonical content."""
        ...


# RFC 9562: what stands in the upper half of a UUID's bytes 6 and 8 is not random.
_VERSION_4 = bytes(0x40 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0xA0 | byte & 0x0F for byte in range(256))


class RandomIds:
    """Names that never repeat: random UUIDs (version 4)."""

    __slots__ = ("_pool",)
    deterministic = False

    # One system call serves this many identities of three UUIDs each; made together they take half the time.
    _BATCH = 64

    def __init__(self) -> None:
        self._pool: list[Identity] = []
        # A forked child must not hand out its parent's names again.
        os.register_at_fork(after_in_child=self._pool.clear)

    def name(self, content: bytes) -> Identity:
        """Return fresh names; the content does not matter."""
        del content
        if not self._pool:
            self._fill()
        return self._pool.pop()

    def _fill(self) -> None:
        drawn = bytearray(os.urandom(48 * self._BATCH))
        drawn[6::16] = drawn[6::16].translate(_VERSION_4)
        drawn[8::16] = drawn[8::16].translate(_VARIANT)
        digits = drawn.hex()
        for at in range(0, len(digits), 96):
            request = digits[at : at + 32]
            self._pool.append(
                Identity(
                    f"{request[:8]}-{request[8:12]}-{request[12:16]}-{request[16:20]}-{request[20:]}",
                    digits[at + 32 : at + 64],
                    digits[at + 64 : at + 96],
                )
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
