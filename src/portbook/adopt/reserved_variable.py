"""Names of variables that an entry of a client must not have: they change Portbook itself. Pure: no I/O.

The entry starts one Portbook for all servers of a client. A variable that Python, the loader, the system's
libraries or Portbook read would stop it or lead it elsewhere, and would reach the other servers, too.
"""

from __future__ import annotations

from typing import Final

__all__ = ["is_reserved", "unreserved"]

_STARTS: Final = ("PYTHON", "LD_", "DYLD_", "LC_", "XDG_", "SSL_CERT_", "OPENSSL_", "PORTBOOK_", "UV_")
_ENDS: Final = ("_PROXY",)
_NAMES: Final = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "TMPDIR", "TEMP", "TMP", "LANG", "LANGUAGE", "TZ"}
    | {"TERM", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "VIRTUAL_ENV", "GLIBC_TUNABLES"}
)
_PREFIX: Final = "ADOPTED_"


def is_reserved(name: str) -> bool:
    """Return whether a variable changes what Portbook, or every server of a client, does."""
    known = name.upper()  # libraries read some of them in small letters, such as https_proxy
    return known in _NAMES or known.startswith(_STARTS) or known.endswith(_ENDS)


def unreserved(prefix: str, name: str) -> str:
    """Return a name for a server's own variable in an entry; the prefix alone may make a reserved one."""
    made = prefix + name
    return made if not made.upper().startswith(_STARTS) else _PREFIX + made
