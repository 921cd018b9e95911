"""Which values of an entry are secrets, the files of secrets, why a server is left in place. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portbook.exports.client_table import EntryStyle
from portbook.model import JSONObject
from portbook.redaction.detectors import spans_of_shapes
from portbook.redaction.secret_names import SecretNames
from portbook.text.late_pattern import late_pattern

__all__ = [
    "is_secret",
    "may_be_secret",
    "secret_file_of",
    "secrets_in",
    "why_file_is_left",
    "why_left",
    "why_not_asked",
]

# Why a server of a client cannot be adopted, and is left in place.

# Members that Portbook has no use for, and whose loss changes nothing of what a server does.
_DROPPED: Final = frozenset(
    {
        "type",
        "name",
        "description",
        "title",
        "icon",
        "source",
        "timeout",
        "startup_timeout_sec",
        "tool_timeout_sec",
    }
    | {"autoApprove", "alwaysAllow", "trust", "transportType", "transport", "enabled", "disabled", "bundled"}
    | {"gallery", "version", "display_name", "env_keys", "available_tools", "startup_timeout_ms", "cwd"}
)
_OLD_TRANSPORT: Final = frozenset({"sse"})
_LOGIN: Final = late_pattern(r"status 40[13]\b")


def _are_texts(entry: JSONObject, style: EntryStyle) -> bool:
    """Return whether what a server is started with is text already: nothing is turned into it."""
    program = entry.get(style.command)
    if isinstance(program, dict):  # the older form of Zed
        return _are_texts({**program, style.command: program.get("path"), "cwd": entry.get("cwd")}, style)
    words = program if style.args is None else entry.get(style.args)
    if words is not None and not (isinstance(words, list) and all(isinstance(each, str) for each in words)):
        return False
    return isinstance(entry.get("cwd"), str | None)


def why_left(
    entry: JSONObject,
    style: EntryStyle,
    command: tuple[str, ...],
    url: str | None,
    env: tuple[tuple[str, str], ...] | None,
    headers: tuple[tuple[str, str], ...] | None,
) -> str | None:
    """Return why an entry cannot be adopted; the first reason counts."""
    known = {
        style.command,
        style.args,
        style.env,
        style.headers,
        *style.urls,
        *style.local,
        *style.remote,
    } | _DROPPED
    unknown = sorted(key for key in entry if key not in known and not key.startswith(("_", "/", "#")))
    reasons = (
        (entry.get("disabled") is True or entry.get("enabled") is False, "it is switched off"),
        (bool(unknown), f"Portbook cannot take over its setting {unknown[0]}" if unknown else ""),
        (bool(command and url), "it has both a command and an address"),
        (not command and not url, "it has no command and no address"),
        (env is None or headers is None, "its variables or headers are not texts"),
        (not _are_texts(entry, style), "its command, its arguments or its folder are not texts"),
        (
            any(map(_cannot_be_passed_on, _all_texts(entry, command, url, env, headers))),
            "it has a character that cannot be passed on",
        ),
        (
            isinstance(cwd := entry.get("cwd"), str) and not cwd.startswith("/"),
            "its folder is a relative path",
        ),
        (entry.get("type") in _OLD_TRANSPORT, "it speaks the old HTTP+SSE transport"),
        (
            any(map(has_reference, (*command, url or ""))),
            "only the client fills in what its command refers to",
        ),
        (
            any(secrets_in(command)),
            "a secret among its arguments would be copied; move it to a variable first",
        ),
        (url is not None and is_secret("", url), "its address has a secret in it, which would be copied"),
    )
    return next((why for is_so, why in reasons if is_so), None)


def _all_texts(
    entry: JSONObject,
    command: tuple[str, ...],
    url: str | None,
    *tables: tuple[tuple[str, str], ...] | None,
) -> Iterator[str]:
    """Yield every text of an entry that a server gets."""
    cwd = entry.get("cwd")
    yield from (*command, url or "", cwd if isinstance(cwd, str) else "")
    for table in tables:
        for pair in table or ():
            yield from pair


def _cannot_be_passed_on(text: str) -> bool:
    """Return whether no process can get a text: half a character of UTF-16, or the end of a C string."""
    return "\0" in text or any("\ud800" <= each <= "\udfff" for each in text)


def why_file_is_left(*, is_read_only: bool, is_replaceable: bool) -> str | None:
    """Return why no server of a client's file can be adopted, whatever its entry says, or None."""
    if is_read_only:
        return "its file is read-only"
    if not is_replaceable:
        return "its folder cannot be written"
    return None


def why_not_asked(problem: str) -> str:
    """Return why a server is left that was asked what it offers, and did not say so."""
    if _LOGIN.search(problem):
        return "its login belongs to the client"
    return f"it could not be asked: {problem}"


# Which values of a client's entry are secrets: variables, arguments, an address.


# What only a client fills in: ${VAR}, ${input:id}, {env:VAR}.
_REFERENCE_IN_ENTRY: Final = late_pattern(r"\$\{|\{env:|\{file:|^\$[A-Z_]+$")
_SECRET_FLAG: Final = late_pattern(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.+))?$")
_SECRET_NAMES: Final = SecretNames(())
_NOT_IN_FILE_NAME: Final = late_pattern(r"[^A-Za-z0-9]+")
# Words, ports and modes are shorter.
_RANDOM: Final = 16


def has_reference(text: str) -> bool:
    """Return whether a text has something in it that only a client fills in."""
    return _REFERENCE_IN_ENTRY.search(text) is not None


def secrets_in(command: tuple[str, ...]) -> Iterator[str]:
    """Yield the arguments that are secrets by their shape, or by the flag before them."""
    for before, each in zip(("", *command), command, strict=False):
        flag, earlier = _SECRET_FLAG.match(each), _SECRET_FLAG.match(before)
        if flag and flag["value"] and is_secret(flag["name"], flag["value"]):
            yield flag["value"]
        elif is_secret("", each) or (
            earlier and not earlier["value"] and flag is None and is_secret(earlier["name"], each)
        ):
            yield each


def is_secret(name: str, value: str) -> bool:
    """Return whether a value is a secret, by its name or by its shape."""
    if has_reference(value):
        return False
    is_named = bool(name) and (
        _SECRET_NAMES.holds_secret(name, value) or name.casefold().endswith(("_token", "_key", "_pat"))
    )
    return is_named or next(iter(spans_of_shapes(value, "off")), None) is not None


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a value is one to redact: a secret, or long and random enough to be one."""
    is_random = len(value) >= _RANDOM and " " not in value and "/" not in value
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_secret(name, value) or has_reference(value) or (is_random and is_mixed)


def secret_file_of(alias: str, header: str) -> str:
    """Return the file, beside the settings, into which the value of a server's header is put."""
    return f"secrets/{alias}-{_NOT_IN_FILE_NAME.sub('-', header).lower()}"
