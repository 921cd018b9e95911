"""Reads `[http.NAME]` of the settings into a `Gateway`: URL, credentials, limits. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from portbook.apis.gateway import SUBSCRIPTION_HEADER, Gateway, Login, ManagedIdentity, Secret
from portbook.apis.secret_reader import read_login, read_secret
from portbook.apis.table_reader import Table
from portbook.net.destinations import BadDestination, parse_url
from portbook.tools.operation import is_token

__all__ = [
    "BASE_URL_VARIABLE",
    "GATEWAY_KEYS",
    "is_argument_header",
    "is_our_header",
    "read_base_url",
    "read_gateway",
    "sends_cookies",
]

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
