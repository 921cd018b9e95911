"""The check of every head, before its body is read, whatever its path. Pure: no I/O.

1. A request with several Host headers, or an HTTP/1.1 request with none, is refused.
2. So is one that repeats a header of which one value counts (`repeated_headers.py`).
3. For every remaining one `Host` and `Origin` decide; `net/allowed_hosts_and_origins.py` has the rule.

`router.py` serves no refused request: it has the route word the refusal instead.
"""

from __future__ import annotations

from typing import Final

from portbook.doors.http.repeated_headers import refuse_repeated
from portbook.doors.http.request import RequestHead
from portbook.errors import Reason, Refused
from portbook.net.allowed_hosts_and_origins import Hosts

__all__ = ["refuse_head"]

_HOST: Final = b"host"


def refuse_head(head: RequestHead, hosts: Hosts) -> Refused | None:
    """Return why a request is refused, None if it may be served."""
    fields = head.fields
    if len(fields) < len(head.headers):
        names = [name for name, _ in head.headers]
        if names.count(_HOST) > 1:
            return Refused(Reason.BAD_HOST)
        if (refused := refuse_repeated(names)) is not None:
            return refused
    if _HOST not in fields and head.version == "1.1":  # RFC 9112, 3.2
        return Refused(Reason.BAD_HOST)
    return hosts.refuse(fields)
