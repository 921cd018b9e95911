"""What is likely to be wrong with the MCP servers of the settings, found without starting one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from portbook.pins.pin_lock import PinLock
from portbook.settings import Settings
from portbook.text.did_you_mean import did_you_mean
from portbook.upstreams.mcp_table import DeclaredUpstream

__all__ = ["server_doubts"]


def server_doubts(
    settings: Settings, servers: Iterable[DeclaredUpstream], environ: Mapping[str, str]
) -> list[str]:
    """Return what would keep servers from being served, each with file and line.

    Raises `BadLock` where the lock cannot be used.
    """
    lock = PinLock.read(settings.folder)
    return [doubt for server in servers for doubt in _doubts_of(settings, server, lock, environ)]


def _doubts_of(
    settings: Settings, server: DeclaredUpstream, lock: PinLock, environ: Mapping[str, str]
) -> Iterator[str]:
    alias, known = server.alias, lock.servers.get(server.alias)
    if known is None and server.pins.trust == "lock":
        place = settings.position_of("mcp", alias)
        yield f"{place}: nothing of mcp.{alias} is approved, so nothing is served; run `portbook pin {alias}`"
    if server.command and not _is_there(server, environ):
        place = settings.position_of("mcp", alias, "command")
        yield f"{place}: mcp.{alias}.command: there is no such program; install it, or correct its name"
    if server.cwd is not None and not server.cwd.is_dir():
        place = settings.position_of("mcp", alias, "cwd")
        yield f"{place}: mcp.{alias}.cwd is not a folder; create it, or correct the path"
    for key, sources in (("env", server.env), ("headers", server.headers)):
        for name, source in sources.items():
            if source.env is not None and source.env not in environ:
                place = settings.position_of("mcp", alias, key, name)
                yield f"{place}: the environment variable {source.env} is not set; mcp.{alias} cannot start"
    names = [] if known is None else list(known.tools)
    for name in server.effects if names else ():
        if name not in names:
            place = settings.position_of("mcp", alias, "effects", name)
            hint = did_you_mean(name, names, f"`portbook pin --check {alias}` shows what it has")
            yield f"{place}: mcp.{alias} has no approved tool of this name; {hint}"


def _is_there(server: DeclaredUpstream, environ: Mapping[str, str]) -> bool:
    """Return whether the program of a server can be found, as it is when the server is started."""
    from shutil import which  # late: only where servers are started

    program = server.command[0]
    if "/" in program:
        return which(str(server.starts_in / program)) is not None
    source = server.env.get("PATH")
    if source is not None and source.text is None:
        return True  # known only once the server is started
    return which(program, path=environ.get("PATH", "") if source is None else source.text) is not None
