"""The environment of a server's process: a few variables of ours, and those that the settings name.

One variable counts how many Portbooks stand before the process. A server whose command starts Portbook with
the same settings would start itself again without end; the count ends that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from portbook.upstreams.transport import NotSent

__all__ = ["child_environment"]

# What programs need to find themselves, their user, their language and the way out; never a secret of ours.
_PASSED_ON: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TMP", "TEMP", "TZ", "LANG", "LANGUAGE"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("all_proxy", "SYSTEMROOT", "APPDATA", "LOCALAPPDATA", "USERPROFILE", "PATHEXT", "COMSPEC"),
)
_LOCALE: Final = "LC_"

_DEPTH: Final = "PORTBOOK_SERVERS_BEFORE"
_MAX_DEPTH: Final = 4


def child_environment(ours: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a child: of `ours` those on the list, and all that it is `given`.

    Raises `NotSent` where too many Portbooks stand before it.
    """
    before = ours.get(_DEPTH, "")
    depth = int(before) if before.isdecimal() and len(before) < len("100") else 0
    if depth >= _MAX_DEPTH:
        raise NotSent(
            f"{_MAX_DEPTH} Portbooks in a row stand before this one; where the command of a server is "
            "Portbook itself, give it settings of its own with --config"
        )
    passed_on = {
        name: value for name, value in ours.items() if name in _PASSED_ON or name.startswith(_LOCALE)
    }
    return {**passed_on, **given, _DEPTH: str(depth + 1)}
