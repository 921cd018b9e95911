"""The HTTP door of `portbook serve`, as the settings describe it: where it listens, TLS, trusted proxies."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable

from portbook.app.running_app import App
from portbook.doors.http.health_route import Fellows
from portbook.doors.http.route_table import routes_of, sessions_of
from portbook.doors.http.server.http_server_and_shutdown import HttpServer, ServerOptions
from portbook.doors.http.server.listeners_of_workers import ConnectionTally, bind, is_host, is_loopback
from portbook.doors.http.server.peer_address import BadProxy, PeerAddresses
from portbook.doors.http.server.tls import BadCertificate, ServerCertificate
from portbook.doors.sockets import UnixSocket
from portbook.settings import Settings

__all__ = ["HttpDoor", "bound", "usable_certificate", "usable_host", "usable_socket_path"]


class HttpDoor:
    """A socket that listens from the start on, and a server on it once there are routes."""

    def __init__(
        self,
        settings: Settings,
        inherited: int | None = None,
        tally: ConnectionTally | None = None,
        workers: Fellows | None = None,
    ) -> None:
        """Listen as the settings say, or at the socket with the descriptor `inherited`.

        `tally` and `workers` are those of a worker: further processes listen at the same socket.

        Raises `BadSettings` for settings that cannot be used, `OSError` where it cannot listen.
        """
        self._trusted_proxies = settings.trusted_proxies
        self._has_legacy_sse = settings.legacy_sse
        self._certificate = usable_certificate(settings)
        self._unix = _unix_socket(settings) if inherited is None else None
        host = settings.host
        if inherited is not None:
            self._listener = socket.socket(fileno=inherited)
            # Where it listens decides, whatever the settings have come to say since.
            is_at_path = self._listener.family == socket.AF_UNIX
            host = "localhost" if is_at_path else str(self._listener.getsockname()[0])
        else:
            self._listener = bound(settings) if self._unix is None else self._unix.listener
        self.is_exposed = self._unix is None and not is_loopback(host)
        """Whether different machines can connect."""
        self.place = self._place()
        """Where clients find it: an address to open, or the path of the socket; also after it is closed."""
        self._tally = tally
        self._workers = workers

    @property
    def descriptor(self) -> int:
        """Return the descriptor of the socket that listens."""
        return self._listener.fileno()

    def _place(self) -> str:
        if self._listener.family == socket.AF_UNIX:
            return f"the socket {self._listener.getsockname()}"
        bound, port = self._listener.getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(bound), str(bound))  # noqa: S104 - an address to open, not to bind
        scheme = "http" if self._certificate is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def invitation(self, served: str) -> str:
        """Return what operators read when it serves: how much, in words, and where."""
        place = self.place
        if not place.startswith("http"):
            return f"serving {served} at {place}; Ctrl-C stops"
        return f"serving {served}; open {place}/ or connect an MCP client to {place}/mcp; Ctrl-C stops"

    def open(self, app: App, warn: Callable[[str], None]) -> HttpServer:
        """Return the server of an app's routes."""
        options = ServerOptions(
            trusted_proxies=self._trusted_proxies,
            tls=None if self._certificate is None else self._certificate.context,
            tally=self._tally,
            # Workers that share a file are stopped together; nodes that share a database, one by one.
            has_peers=app.nodes is not None and app.store.path is None,
        )
        sessions = sessions_of(app, warn)
        routes = routes_of(
            app, warn, has_legacy_sse=self._has_legacy_sse, workers=self._workers, sessions=sessions
        )
        return HttpServer(routes, [self._listener], options, app.changes.close, sessions)

    def reload_certificate(self) -> None:
        """Read the certificate again, if there is one.

        Raises `BadCertificate` where it cannot be used; the old one stays.
        """
        if self._certificate is not None:
            self._certificate.reload()

    def close_listener(self) -> None:
        """Stop listening here; a socket at a path stays there."""
        self._listener.close()

    def close(self) -> None:
        """Stop listening; a socket at a path is removed."""
        self._listener.close()
        if self._unix is not None:
            self._unix.remove()


def bound(settings: Settings) -> socket.socket:
    """Return a socket that listens at the host and port of the settings.

    Raises `BadSettings` for a host that is none, `OSError` where it cannot listen.
    """
    usable_host(settings)
    try:
        return bind(settings.host, settings.port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            why = f"cannot listen on {settings.host} port {settings.port}: the port is in use; "
            raise OSError(error.errno, f"{why}choose a different one with --port") from None
        why = error.strerror or str(error)
        raise settings.complain(
            ("server", "host"), f"cannot be listened at: {why}; use an address of this machine"
        ) from None


def usable_host(settings: Settings) -> None:
    """Raise `BadSettings` where the host is neither an address nor a name."""
    if not is_host(settings.host):
        raise settings.complain(
            ("server", "host"), "must be an address or a name, without http:// and without a port"
        )


def usable_socket_path(settings: Settings) -> None:
    """Raise `BadSettings` where a socket cannot be made at the path of the settings; nothing is made."""
    path = settings.socket
    if path is None:
        return
    if not path.parent.is_dir():
        raise settings.complain(("server", "socket"), "is in a folder that does not exist; create it")
    if os.path.lexists(path) and not path.is_socket():
        raise settings.complain(("server", "socket"), "is a file that is no socket; choose a different path")


def _unix_socket(settings: Settings) -> UnixSocket | None:
    """Return the socket at the path of the settings, None where they name none.

    Raises `BadSettings` where it cannot listen there.
    """
    if settings.socket is None:
        return None
    usable_socket_path(settings)
    try:
        return UnixSocket(settings.socket)
    except OSError as error:
        raise settings.complain(("server", "socket"), f"cannot be used: {error.strerror or error}") from None


def usable_certificate(settings: Settings) -> ServerCertificate | None:
    """Return the certificate that the settings name, or None; nothing is opened.

    Raises `BadSettings` where it cannot be used, or the proxies cannot.
    """
    try:
        PeerAddresses(settings.trusted_proxies)
    except BadProxy as error:
        raise settings.complain(("server", "trusted_proxies"), str(error)) from None
    if settings.tls is None:
        return None
    try:
        return ServerCertificate(settings.tls.cert, settings.tls.key)
    except BadCertificate as error:
        raise settings.complain(("server", "tls"), f"cannot be used: {error}") from None
