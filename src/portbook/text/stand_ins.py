"""Imports libraries without modules that these import for themselves, and use seldom or never.

While a library is imported, stand-ins take the places of such modules. A stand-in imports its module with the
first use of anything that it has not itself. Everybody else who imports the module gets the module itself.

Together this is a sixth of a start over STDIO.
"""

from __future__ import annotations

import atexit
import importlib
import os
import sys
from types import ModuleType
from typing import Any, Final

__all__ = [
    "import_asyncio",
    "import_click",
    "import_jsonschema",
    "import_server_libraries",
    "import_urls",
    "import_uuid",
    "late_module",
]


class _StandIn(ModuleType):
    """Stands for a module in the modules that imported it early."""

    def itself(self) -> ModuleType:
        """Import the module, with its first use, and keep it: when Python ends, nothing can be imported."""
        found: ModuleType | None = vars(self).get("_itself")
        if found is None:
            if sys.modules.get(self.__name__) is self:  # used while the library is still being imported
                del sys.modules[self.__name__]
            found = vars(self)["_itself"] = importlib.import_module(self.__name__)
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks around among modules does not use it
            raise AttributeError(name)
        return getattr(self.itself(), name)


def late_module(name: str) -> Any:
    """Return a module, or what imports it with its first use."""
    return sys.modules.get(name) or _StandIn(name)


def import_server_libraries() -> None:
    """Import what every server needs, without what few servers need."""
    import_uuid()
    import_asyncio()
    import_jsonschema()
    import_urls()


def _import_with(library: str, *stand_ins: _StandIn) -> bool:
    """Import a library with stand-ins for modules that are not there yet; return whether it got them.

    Not where a second thread runs: what it imports meanwhile would get them, too.
    """
    threading = sys.modules.get("threading")
    if library in sys.modules or (threading is not None and threading.active_count() > 1):
        importlib.import_module(library)
        return False
    placed = [each for each in stand_ins if each.__name__ not in sys.modules]
    sys.modules.update({each.__name__: each for each in placed})
    try:
        importlib.import_module(library)
    finally:
        for each in placed:
            if sys.modules.get(each.__name__) is each:
                del sys.modules[each.__name__]
    return True


# What reads source text, for tracebacks and `inspect`.
_TOKENIZE: Final = _StandIn("tokenize")


class _Untranslated(_StandIn):
    """Stands for `gettext`: Portbook installs no catalogue, and without one every text stays as it is."""

    @staticmethod
    def gettext(message: str) -> str:
        return message

    @staticmethod
    def ngettext(one: str, many: str, count: int) -> str:
        return one if count == 1 else many


def import_click() -> None:
    """Import click without `gettext`, and `inspect` without the module that reads source text.

    Where a text is to be translated, `gettext` also imports `locale` and looks for catalogues among files.
    """
    _import_with("click", _Untranslated("gettext"), _TOKENIZE)


class _LateLogger:
    """Stands for a logger, which is there when something is logged or asked of it."""

    def __init__(self, name: str) -> None:
        vars(self)["_name"] = name

    def itself(self) -> Any:
        """Return the logger, and keep it."""
        if "_itself" not in vars(self):
            vars(self)["_itself"] = importlib.import_module("logging").getLogger(vars(self)["_name"])
        return vars(self)["_itself"]

    def __getattr__(self, name: str) -> Any:
        # Every event loop tells how it waits. Nothing asks for that where nothing has imported the module.
        if name == "debug" and "logging" not in sys.modules:
            return _ignore
        return getattr(self.itself(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.itself(), name, value)


def _ignore(*_: Any, **__: Any) -> None:
    """Log nothing."""


class _LateLogging(_StandIn):
    """Stands for `logging` where only loggers and the number of a level are asked for."""

    DEBUG = 10

    def __init__(self) -> None:
        super().__init__("logging")
        self.loggers: list[_LateLogger] = []

    def getLogger(self, name: str) -> _LateLogger:  # noqa: N802 - its name there
        self.loggers.append(_LateLogger(name))
        return self.loggers[-1]


class _NoProcesses(_StandIn):
    """Stands for `subprocess` where only the values of three arguments are taken from it."""

    PIPE, STDOUT, DEVNULL = -1, -2, -3


def import_asyncio() -> None:
    """Import asyncio without TLS, processes, logs and wrapped text, each imported when something uses it.

    `ssl` is a fifth of its memory and of the time that it takes to import. Most servers over STDIO never open
    a TLS connection.

    asyncio uses it for every TCP connection that it opens, to refuse sockets of TLS. So what calls HTTP APIs
    and MCP servers over HTTP imports it at the start (`net/dns_and_dial.py`). What remains: a tool that opens
    the first TCP connection of its process with asyncio, and the first one to a receiver of syslog, import it
    then, in the event loop; other calls wait meanwhile, once.
    """
    protocol, logging = _StandIn("asyncio.sslproto"), _LateLogging()
    reporting = _StandIn("textwrap"), _TOKENIZE
    others = _StandIn("ssl"), _NoProcesses("subprocess"), logging
    if _import_with("asyncio", protocol, *others, *reporting):
        # Where importing a submodule puts it; so does importing the module itself, later.
        vars(sys.modules["asyncio"])["sslproto"] = protocol
        # What failed and was never asked for is reported last of all, when nothing can be imported.
        atexit.register(lambda: [each.itself() for each in (*reporting, *logging.loggers)])


class _EmailOfBuild(_StandIn):
    """Stands for `email.utils` where only the date of a build is read, which nobody reads again."""

    parsedate_to_datetime = staticmethod(str)


def import_jsonschema() -> None:
    """Import the library without `email`, which it asks for the time at which it was built, and nothing else.

    That is a dozen modules, with `random` and `calendar`: more than the library takes itself.
    """
    _import_with("jsonschema_rs", _EmailOfBuild("email.utils"))


def import_urls() -> None:
    """Import what reads URLs, as `pathlib` does, without the module that reads IP addresses in them."""
    _import_with("urllib.parse", _StandIn("ipaddress"))


class _NameOfSystem(_StandIn):
    """Stands for `platform` where only the name of the system is asked for."""

    @staticmethod
    def system() -> str:
        return os.uname().sysname


def import_uuid() -> None:
    """Import `uuid`, which click and orjson need, without `platform`: nine patterns, for one name.

    From Python 3.13 on, it does without `platform` itself.
    """
    _import_with("uuid", _NameOfSystem("platform"))
