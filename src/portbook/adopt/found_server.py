"""`FoundServer`: a server in a client's configuration, and whether it can be adopted. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.adopt.client_document import entries_at
from portbook.exports.client_table import EntryStyle, KeyPath, KnownClient
from portbook.model import JSON, JSONObject
from portbook.redaction.detectors import spans_of_shapes
from portbook.redaction.secret_names import SecretNames
from portbook.text.late_pattern import late_pattern

__all__ = ["FoundServer", "ServerPlace", "found_servers", "is_ours", "may_be_secret", "places_of"]

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
# What only a client fills in: ${VAR}, ${input:id}, {env:VAR}.
_REFERENCE: Final = late_pattern(r"\$\{|\{env:|\{file:|^\$[A-Z_]+$")
_SECRET_FLAG: Final = late_pattern(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.+))?$")
_NAMES: Final = SecretNames(())
# Words, ports and modes are shorter.
_RANDOM: Final = 16
_MASK: Final = "[redacted]"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where entries stand: a file of a client, and the place in it."""

    client: KnownClient
    file: Path
    path: KeyPath


@dataclass(frozen=True, slots=True)
class FoundServer:
    """One entry."""

    place: ServerPlace
    name: str
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    url: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    cwd: str | None = None
    left: str | None = None
    """Why it stays where it is; None where it can be adopted."""

    @property
    def identity(self) -> tuple[object, ...]:
        """Return what two entries of the same server have in common; values of variables may differ."""
        names = tuple(sorted(name for name, _ in self.env))
        return (self.command, names, self.url, self.headers, self.cwd)

    @property
    def shown(self) -> str:
        """Return the command or the address, for people; what looks like a secret is not in it."""
        program, *arguments = self.command or (str(self.url or "").split("?")[0],)
        secrets = self.secret_values
        shown = [_shown_argument(each, secrets) for each in arguments]
        words = " ".join((Path(program).name if self.command else program, *shown))
        for start, end in sorted(spans_of_shapes(words), reverse=True):
            words = words[:start] + _MASK + words[end:]
        return words

    @property
    def clear_secrets(self) -> int:
        """Return how many values that are named like secrets, or look like them, stand in the clear."""
        values = (*self.env, *self.headers, ("", self.url or ""))
        return sum(_is_secret(name, value) for name, value in values) + len([*_secrets_in(self.command)])

    @property
    def secret_values(self) -> frozenset[str]:
        """Return every value that is not to be shown: secrets, what may be one, and all of its headers."""
        variables = {value for name, value in self.env if may_be_secret(name, value)}
        url = {self.url} if self.url is not None and _is_secret("", self.url) else set[str]()
        return frozenset(
            {value for _, value in self.headers} | variables | url | {*_secrets_in(self.command)}
        )


def places_of(client: KnownClient, file: Path, whole: JSON) -> Iterator[ServerPlace]:
    """Yield the places of a document that can have servers: Claude Code has some for each project, too."""
    yield ServerPlace(client, file, client.path)
    if client.name == "claude-code" and isinstance(whole, dict):
        projects = whole.get("projects")
        for project in projects if isinstance(projects, dict) else ():
            yield ServerPlace(client, file, ("projects", project, "mcpServers"))


def found_servers(place: ServerPlace, whole: JSON) -> Iterator[FoundServer]:
    """Yield the servers at a place of a document."""
    for name, entry in entries_at(whole, place.path).items():
        yield _found(place, name, entry)


def is_ours(server: FoundServer, settings: Path) -> bool:
    """Return whether an entry starts Portbook with these settings."""
    return "--config" in server.command and str(settings) in server.command


def _found(place: ServerPlace, name: str, entry: JSONObject) -> FoundServer:
    style = place.client.style
    command = _command(entry, style)
    url = next((str(entry[key]) for key in style.urls if isinstance(entry.get(key), str)), None)
    env, headers = _texts(entry.get(style.env)), _texts(entry.get(style.headers))
    cwd = entry.get("cwd")
    return FoundServer(
        place,
        name,
        command,
        env or (),
        url,
        headers or (),
        cwd if isinstance(cwd, str) else None,
        _why_left(entry, style, command, url, env, headers),
    )


def _command(entry: JSONObject, style: EntryStyle) -> tuple[str, ...]:
    program = entry.get(style.command)
    if isinstance(program, dict):  # the older form of Zed
        return _command({**program, style.command: program.get("path")}, style)
    if style.args is None:
        return tuple(map(str, program)) if isinstance(program, list) else ()
    args = entry.get(style.args)
    if not isinstance(program, str):
        return ()
    return (program, *(map(str, args) if isinstance(args, list) else ()))


def _texts(value: JSON) -> tuple[tuple[str, str], ...] | None:
    """Return a table of texts; None where it is something else."""
    if value is None:
        return ()
    if not isinstance(value, dict) or not all(isinstance(each, str | int | float) for each in value.values()):
        return None
    return tuple((name, each if isinstance(each, str) else str(each)) for name, each in value.items())


def _why_left(
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
            any(map(_has_reference, (*command, url or ""))),
            "only the client fills in what its command refers to",
        ),
        (
            any(_secrets_in(command)),
            "a secret among its arguments would be copied; move it to a variable first",
        ),
        (url is not None and _is_secret("", url), "its address has a secret in it, which would be copied"),
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


def _shown_argument(argument: str, secrets: Collection[str]) -> str:
    """Return an argument without the secret that it is, or that it gives to a flag."""
    flag, sign, value = argument.partition("=")
    if argument in secrets:
        return _MASK
    return f"{flag}{sign}{_MASK}" if value in secrets and sign else argument


def _cannot_be_passed_on(text: str) -> bool:
    """Return whether no process can get a text: half a character of UTF-16, or the end of a C string."""
    return "\0" in text or any("\ud800" <= each <= "\udfff" for each in text)


def _has_reference(text: str) -> bool:
    return _REFERENCE.search(text) is not None


def _secrets_in(command: tuple[str, ...]) -> Iterator[str]:
    """Yield the arguments that are secrets by their shape, or by the flag before them."""
    for before, each in zip(("", *command), command, strict=False):
        flag, earlier = _SECRET_FLAG.match(each), _SECRET_FLAG.match(before)
        if flag and flag["value"] and _is_secret(flag["name"], flag["value"]):
            yield flag["value"]
        elif _is_secret("", each) or (
            earlier and not earlier["value"] and flag is None and _is_secret(earlier["name"], each)
        ):
            yield each


def _is_secret(name: str, value: str) -> bool:
    if _has_reference(value):
        return False
    is_named = bool(name) and (
        _NAMES.holds_secret(name, value) or name.casefold().endswith(("_token", "_key", "_pat"))
    )
    return is_named or next(iter(spans_of_shapes(value, "off")), None) is not None


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a value is one to redact: a secret, or long and random enough to be one."""
    is_random = len(value) >= _RANDOM and " " not in value and "/" not in value
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return _is_secret(name, value) or _has_reference(value) or (is_random and is_mixed)
