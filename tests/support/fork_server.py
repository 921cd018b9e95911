"""A process that has imported Portbook and forks, for each start it is asked for, a process that runs it.

The forked process is as a new one: arguments, folder, environment, descriptors, standard streams and signals
are those of the start, and it ends as Python ends. Its parent is the process that asked. Runs as a program;
`forked_process` has the other end of the socket.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import io
import json
import os
import pkgutil
import platform
import runpy
import signal
import socket
import struct
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

LENGTH: Final = struct.Struct("!I")
STREAMS: Final = 3
_MOST_DESCRIPTORS: Final = 1024
CLONE: Final = {"x86_64": 56, "aarch64": 220, "riscv64": 220}
"""The number of the system call, on machines where it is known."""
_CLONE_PARENT: Final = 0x8000
# Run as programs, they are not modules yet. The plugin needs pytest.
_NOT_IMPORTED: Final = frozenset(
    {"portbook.__main__", "portbook.cli.adapter", "portbook.testing.plugin", "portbook.sandbox.observe"}
)
# What commands import only when they need it, and most need.
_LATE: Final = (
    "asyncio",
    "concurrent.futures.thread",
    "difflib",
    "hashlib",
    "secrets",
    "shlex",
    "ssl",
    "uuid",
)

_before: Final = frozenset(sys.modules)
_imported: list[str] = []


@dataclass(frozen=True, slots=True)
class Start:
    """What a process is started with; its standard streams come beside it."""

    command: list[str]
    folder: str
    environment: dict[str, str]
    new_session: bool


def main(requests: socket.socket) -> None:
    """Fork for each request; return only in a forked process, which is ready to run, and at the end."""
    atexit.register(_keep_modules)  # before anything else, so that it runs after everything else
    _import_portbook()
    gc.collect()
    gc.freeze()  # what is imported is never garbage
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for those who asked
    while True:
        length, streams, _, _ = socket.recv_fds(requests, LENGTH.size, STREAMS)
        if not length:
            os._exit(0)  # whoever asked has ended
        body = _exactly(requests, LENGTH.unpack(length)[0])
        if not (process := _fork()):
            requests.close()
            _become(Start(**json.loads(body)), streams)
            return
        for stream in streams:
            os.close(stream)
        requests.sendall(LENGTH.pack(process))


def _import_portbook() -> None:
    before = set(sys.modules)
    import portbook
    from portbook.schema import engine

    for module in pkgutil.walk_packages(portbook.__path__, "portbook."):
        if module.name not in _NOT_IMPORTED:
            with contextlib.suppress(ImportError):  # of a system that this is not
                importlib.import_module(module.name)
    for name in _LATE:
        importlib.import_module(name)
    for dialect in (engine.DIALECT, engine.DRAFT_07):
        engine._meta(dialect)  # compiled with the first schema that needs it
    _imported.extend(sys.modules.keys() - before)


def _keep_modules() -> None:
    """Let Python take down, at the end of the process, only what the process itself has imported.

    To free what the server imported takes ten times longer than to fork.
    """
    kept = {name: sys.modules.pop(name, None) for name in _imported}
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))


def _exactly(requests: socket.socket, size: int) -> bytes:
    body = b""
    while len(body) < size:
        body += requests.recv(size - len(body))
    return body


def _fork() -> int:
    """Fork a child of this process's own parent; return its number, or 0 in the new process.

    Python has no word for that, and two forks one after the other take twice as long. What Python does around
    the call is done here. What the C library does, for locks of threads and with the number of a thread that
    it remembers, nothing here needs; other libraries than glibc may.
    """
    before, after_parent, after_child = (
        getattr(ctypes.pythonapi, f"PyOS_{when}")
        for when in ("BeforeFork", "AfterFork_Parent", "AfterFork_Child")
    )
    # One that keeps the lock of the interpreter. Between the two calls of Python's, as little as possible.
    call = ctypes.PyDLL(None, use_errno=True).syscall
    number, flags = CLONE[platform.machine()], int(_CLONE_PARENT | signal.SIGCHLD)
    before()
    process: int = call(number, flags, 0, 0, 0, 0)
    if process == 0:
        after_child()
    else:
        after_parent()
    if process < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return process


def _become(start: Start, streams: list[int]) -> None:
    """Let this process be as one that was started so."""
    if start.new_session:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(STREAMS, _MOST_DESCRIPTORS)
    os.chdir(start.folder)
    os.environ.clear()
    os.environ.update(start.environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.orig_argv = start.command
    sys.argv = ["-m", *start.command[3:]]
    sys.path[0] = str(Path.cwd())
    sys.modules["__main__"] = ModuleType("__main__")
    sys.stdin = sys.__stdin__ = _stream(0, "<stdin>", "r")
    sys.stdout = sys.__stdout__ = _stream(1, "<stdout>", "w")
    sys.stderr = sys.__stderr__ = _stream(2, "<stderr>", "w", "backslashreplace")


def _stream(number: int, name: str, mode: str, errors: str | None = None) -> Any:
    """A standard stream, made as Python makes it."""
    before = (sys.stdin, sys.stdout, sys.stderr)[number]
    unbuffered = before.write_through  # as `-u` and its variable have it
    buffering = 0 if unbuffered and mode == "w" else -1
    buffer: Any = open(number, mode + "b", buffering, closefd=False)  # noqa: SIM115 - as long as the process
    raw = getattr(buffer, "raw", buffer)
    raw.name = name
    text: Any = io.TextIOWrapper(
        buffer,
        before.encoding,
        errors or before.errors,
        newline="\n",
        line_buffering=not unbuffered and (number == 2 or raw.isatty()),
        write_through=unbuffered,
    )
    text.mode = mode
    return text


def run() -> NoReturn:
    """Run what the forked process was started for, as `python -m` does."""
    as_main: Any = getattr(runpy, "_run_module_as_main")  # noqa: B009 - what Python itself calls
    try:
        as_main(sys.orig_argv[2])
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            raise
        code = end.code or 0
    else:
        code = 0
    # Not before: the exception has the frames of the program, and what is in them.
    _end(code)


def _end(code: int) -> NoReturn:
    """End as Python does, but free only what the process itself imported: the rest takes longest."""
    if any(thread.daemon for thread in threading.enumerate()):
        sys.exit(code)  # they run on until Python stops them, which is worth a look
    shut_down: Any = getattr(threading, "_shutdown")  # noqa: B009 - what Python itself calls
    try:
        shut_down()
    except KeyboardInterrupt:
        sys.exit(code)
    atexit.unregister(_keep_modules)
    run_at_exit: Any = getattr(atexit, "_run_exitfuncs")  # noqa: B009 - likewise
    run_at_exit()
    _flush(code)
    _clear_modules()
    _flush(code)
    os._exit(code & 0xFF)


def _flush(code: int) -> None:
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        sys.exit(code)  # Python has words and a status of its own for that


def _clear_modules() -> None:
    """Let go of what is in the modules that this process imported, as Python does."""
    kept = {*_imported, *_before} - {"__main__"}
    modules = [module for name, module in list(sys.modules.items()) if name not in kept]
    own = [vars(module) for module in modules if isinstance(module, ModuleType)]
    for members in own:
        for name in [each for each in members if each.startswith("_") and not each.startswith("__")]:
            members[name] = None
    for members in own:
        for name in [each for each in members if each != "__builtins__"]:
            members[name] = None
    gc.collect()


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
    run()
