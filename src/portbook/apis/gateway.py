"""`Gateway`: an API gateway as declared, with its URL, credentials and limits. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from portbook.apis.table_reader import Table
from portbook.net.destinations import BadDestination, parse_url
from portbook.tools.http_operation import is_token

__all__ = [
    "BASE_URL_VARIABLE",
    "GATEWAY_KEYS",
    "SUBSCRIPTION_HEADER",
    "Gateway",
    "Login",
    "ManagedIdentity",
    "Secret",
    "is_argument_header",
    "is_our_header",
    "read_base_url",
    "read_gateway",
    "read_login",
    "read_secret",
    "sends_cookies",
]

# The name that Azure API Management uses.
SUBSCRIPTION_HEADER: Final = "Ocp-Apim-Subscription-Key"

# Larger than most documents and pictures; a request is held in memory until it is answered.
_MAX_FILE_BYTES: Final = 16_777_216
# The size limit of a message at the doors: a larger response could not be passed on.
_MAX_RESPONSE_BYTES: Final = 1_048_576


@dataclass(frozen=True, slots=True)
class Secret:
    """The source of a secret. It is read when needed, and never written."""

    env: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Login:
    """The credential for one security scheme of an OpenAPI document."""

    secret: Secret | None
    """The key, the token or the password; None where a user's name is all there is."""
    username: str | Secret | None = None
    """Only for HTTP Basic; without it, the secret is `username:password`."""


@dataclass(frozen=True, slots=True)
class ManagedIdentity:
    """The platform's identity of this machine, and the resource that its tokens are for."""

    resource: str
    client_id: str | None = None
    """Which identity, where the machine has several."""
    uses_library: bool = False
    """Whether the optional library `azure-identity` requests the tokens."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """One `[http.NAME]` of the settings, without its tools."""

    name: str
    base_url: str
    headers: tuple[tuple[str, str | Secret], ...] = ()
    """Sent with every request."""
    secrets: tuple[str, ...] = ()
    """Secret values within `headers`, for redaction."""
    subscription_key: Secret | None = None
    subscription_key_header: str = SUBSCRIPTION_HEADER
    bearer: Secret | None = None
    managed_identity: ManagedIdentity | None = None
    logins: tuple[tuple[str, Login], ...] = ()
    """By the name of their scheme, and sent only with operations that require it."""
    proxy: str | None = None
    """The URL of an HTTP proxy; proxies of the environment are not used."""
    ca_file: Path | None = None
    """Certificates to trust instead of the system's."""
    retries: int = 2
    max_response_bytes: int = _MAX_RESPONSE_BYTES
    files: Path | None = None
    """The folder whose files callers may send by their paths."""
    max_file_bytes: int = _MAX_FILE_BYTES
    """The most that the files of one call may have together."""
    gives_error_bodies: bool = True
    """Whether callers get the JSON with which the API explains why it rejected a request."""
    is_proposed: bool = False
    """Whether the base URL is that of an OpenAPI document, not the operator's own."""


# Reads where a secret comes from: a variable or a file that the settings name.

_WANTED: Final = 'must be { env = "NAME" } or { file = "path" }: do not write secrets into this file'
_WANTED_LOGIN: Final = (
    'must be { env = "NAME" }, { file = "path" } or { username = "…", password = { env = "NAME" } }'
)


def read_secret(table: Table, key: str, folder: Path) -> Secret | None:
    """Return the secret at `key`, or None where the key is missing; a path is relative to `folder`.

    Raises the table's exception where it is not one.
    """
    if key not in table:
        return None
    if not isinstance(table.value(key), dict):
        raise table.wrong(key, _WANTED)
    source = table.table(key)
    source.only(("env", "file"))
    env, file = source.text("env"), source.text("file")
    if (env is None) == (file is None):
        raise table.wrong(key, _WANTED)
    return Secret(env, None if file is None else folder / file)


def read_login(table: Table, key: str, folder: Path) -> Login:
    """Return the credential at `key`: a secret, or a user's name with or without a password.

    Raises the table's exception where it is neither.
    """
    if not isinstance(table.value(key), dict):
        raise table.wrong(key, _WANTED_LOGIN)
    source = table.table(key)
    if "username" not in source:
        source.only(("env", "file", "username", "password"))
        if "password" in source:
            raise table.wrong(key, "has a password without a username; add username")
        secret = read_secret(table, key, folder)
        assert secret is not None
        return Login(secret)
    source.only(("username", "password"))
    is_named = isinstance(source.value("username"), dict)
    username = read_secret(source, "username", folder) if is_named else source.text("username")
    if isinstance(username, str) and (":" in username or not username.isprintable()):
        raise source.wrong("username", "must be printable, without a colon")  # RFC 7617 2
    return Login(read_secret(source, "password", folder), username)


# Reads `[http.NAME]` of the settings into a `Gateway`: URL, credentials, limits.

BASE_URL_VARIABLE: Final = "APIM_BASE_URL"

GATEWAY_KEYS: Final = (
    "base_url",
    "bearer",
    "ca_file",
    "credentials",
    "error_bodies",
    "files",
    "headers",
    "managed_identity",
    "max_file_bytes",
    "max_response_bytes",
    "proxy",
    "retries",
    "subscription_key",
    "subscription_key_header",
)

_PRINTABLE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
# Headers that frame or identify a message: only Portbook writes them.
_OURS: Final = frozenset(
    {
        "accept", "accept-encoding", "connection", "content-length", "content-type", "expect", "host",
        "keep-alive", "proxy-authorization", "proxy-connection", "te", "traceparent", "trailer",
        "transfer-encoding", "upgrade", "user-agent", "x-correlation-id", "x-request-id", "x-session-id",
        "x-trace-id",
    }
)  # fmt: skip
_CREDENTIALS: Final = frozenset({"authorization", "cookie", SUBSCRIPTION_HEADER.lower()})
_RETRIES: Final = 10
_RESPONSE_BYTES: Final = 67_108_864
_FILE_BYTES: Final = 268_435_456


def read_gateway(name: str, table: Table, base_url: str, folder: Path) -> Gateway:
    """Return the gateway that `table` declares, at `base_url`; its paths are relative to `folder`.

    Raises the table's exception where a value is not valid.
    """
    given: dict[str, Any] = {
        "retries": table.whole("retries", 0, _RETRIES),
        "max_response_bytes": table.whole("max_response_bytes", 1, _RESPONSE_BYTES),
        "max_file_bytes": table.whole("max_file_bytes", 1, _FILE_BYTES),
    }
    ca_file, files = table.text("ca_file"), table.text("files")
    headers = _headers(table, folder)
    bearer, identity = read_secret(table, "bearer", folder), _identity(table)
    if [bearer, identity, _named(headers, "authorization")].count(None) < 2:
        raise table.wrong(
            "bearer", "cannot be combined with managed_identity or a header Authorization; keep one"
        )
    return Gateway(
        name,
        base_url,
        headers=headers,
        subscription_key=read_secret(table, "subscription_key", folder),
        subscription_key_header=_header_name(table, "subscription_key_header") or SUBSCRIPTION_HEADER,
        bearer=bearer,
        managed_identity=identity,
        logins=_logins(table, folder),
        proxy=_proxy(table),
        ca_file=None if ca_file is None else folder / ca_file,
        files=None if files is None else folder / files,
        gives_error_bodies=table.choice("error_bodies", ("on", "off")) != "off",
        **{key: value for key, value in given.items() if value is not None},
    )


def read_base_url(table: Table, environ: Mapping[str, str]) -> str | None:
    """Return the operator's base URL as written, or None where the servers of a document are to be used.

    1. `base_url`: a URL, or the variable that has it.
    2. The servers of a document, if the operator sets their variables.
    3. The variable that is read by default.
    4. The servers of a document.

    Policy decides on each call whether the destination may be called.

    Raises the table's exception where it is not valid, or where there is neither.
    """
    value = table.value("base_url")
    if isinstance(value, str):
        return value
    has_document = "openapi" in table
    if value is None:
        if has_document and ("server_variables" in table or BASE_URL_VARIABLE not in environ):
            return None
        variable = BASE_URL_VARIABLE
    else:
        variable = _variable(table)
    if variable not in environ:
        raise table.wrong(
            "base_url", f"is not given, and the environment variable {variable} is not set; set one"
        )
    return environ[variable]


def _variable(table: Table) -> str:
    wanted = 'must be a URL, or { env = "NAME" }'
    if not isinstance(table.value("base_url"), dict):
        raise table.wrong("base_url", wanted)
    named = table.table("base_url")
    named.only(("env",))
    variable = named.text("env")
    if variable is None:
        raise named.wrong(None, wanted)
    return variable


def is_argument_header(name: str, gateway: Gateway) -> bool:
    """Return whether an argument may set this header: not one of Portbook's, and not a credential."""
    taken = {header.lower() for header, _ in gateway.headers} | {gateway.subscription_key_header.lower()}
    return is_token(name) and name.lower() not in _OURS | _CREDENTIALS | taken


def sends_cookies(gateway: Gateway) -> bool:
    """Return whether the operator sets the Cookie header, so that no argument may."""
    return any(name.lower() == "cookie" for name, _ in gateway.headers)


def is_our_header(name: str) -> bool:
    """Return whether only Portbook writes this header, because it frames or identifies a message."""
    return name.lower() in _OURS


def _identity(table: Table) -> ManagedIdentity | None:
    if "managed_identity" not in table:
        return None
    given = table.table("managed_identity")
    given.only(("resource", "client_id", "library"))
    resource = given.text("resource")
    if resource is None:
        raise given.wrong(None, "needs resource, which its tokens are for")
    return ManagedIdentity(resource, given.text("client_id"), given.switch("library") or False)


def _headers(table: Table, folder: Path) -> tuple[tuple[str, str | Secret], ...]:
    if "headers" not in table:
        return ()
    given = table.table("headers")
    found: list[tuple[str, str | Secret]] = []
    for name in given:
        _require_header(given, name, name)
        value: Any = given.value(name)
        if not isinstance(value, str):
            secret = read_secret(given, name, folder)
            assert secret is not None
            found.append((name, secret))
        elif _PRINTABLE.fullmatch(value):
            found.append((name, value))
        else:
            raise given.wrong(name, "must be printable ASCII in one line")
    return tuple(found)


def _logins(table: Table, folder: Path) -> tuple[tuple[str, Login], ...]:
    if "credentials" not in table:
        return ()
    given = table.table("credentials")
    return tuple((scheme, read_login(given, scheme, folder)) for scheme in given)


def _header_name(table: Table, key: str) -> str | None:
    name = table.text(key)
    if name is not None:
        _require_header(table, key, name)
    return name


def _require_header(table: Table, key: str, name: str) -> None:
    if not is_token(name):
        raise table.wrong(key, "is not the name of a header; use letters, digits and -")
    if name.lower() in _OURS:
        raise table.wrong(key, "is a header that Portbook writes itself; remove it")


def _named(headers: tuple[tuple[str, str | Secret], ...], name: str) -> object:
    return next((value for header, value in headers if header.lower() == name), None)


def _proxy(table: Table) -> str | None:
    proxy = table.text("proxy")
    if proxy is None:
        return None
    try:
        url = parse_url(proxy)
    except BadDestination as error:
        raise table.wrong("proxy", f"cannot be used: {error}") from None
    if url.destination.scheme != "http" or url.path not in ("", "/") or url.query:
        raise table.wrong("proxy", "must be http://host:port only; requests through it are encrypted")
    return proxy
