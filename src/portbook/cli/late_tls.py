"""Imports asyncio without TLS, which is imported when something uses it.

asyncio imports `ssl` for itself: a fifth of its memory and of the time that it takes to import. Most servers
over STDIO never open a TLS connection. Its modules get a stand-in, which imports the module with the first
use of anything in it. Everybody else who imports `ssl` gets the module itself.

asyncio uses it for every TCP connection that it opens, to refuse sockets of TLS. So what calls HTTP APIs and
MCP servers over HTTP imports it at the start (`net/dial.py`). What remains: a tool that opens the first TCP
connection of its process with asyncio, and the first one to a receiver of syslog, import it then, in the
event loop; other calls wait meanwhile, once.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any, Final

__all__ = ["import_asyncio"]

_LATE: Final = ("ssl", "asyncio.sslproto")


class _Late(ModuleType):
    """Stands for a module in the modules that imported it early."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks around among modules does not use it
            raise AttributeError(name)
        found = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, found)
        return found


def import_asyncio() -> None:
    """Import asyncio, unless it is there already; TLS only later, unless that is there."""
    if "asyncio" in sys.modules or any(name in sys.modules for name in _LATE):
        return
    stand_ins = {name: _Late(name) for name in _LATE}
    sys.modules.update(stand_ins)
    try:
        asyncio = importlib.import_module("asyncio")
    finally:
        for name, stand_in in stand_ins.items():
            if sys.modules.get(name) is stand_in:
                del sys.modules[name]
    # Where importing a submodule puts it; so does importing the module itself, later.
    vars(asyncio)["sslproto"] = stand_ins["asyncio.sslproto"]
