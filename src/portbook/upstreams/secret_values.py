"""Reads the values of variables and headers where the settings say they are, each time a server starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from portbook.scan.embedded_secrets import GIVEN_SECRET
from portbook.upstreams.mcp_table import ValueSource
from portbook.upstreams.transport import NotSent

if TYPE_CHECKING:
    from portbook.redaction.known_secrets import KnownValues

__all__ = ["GivenSecrets", "ValueReader"]

# Longer than any token; a file or a program that gives more is a wrong one.
_MAX_BYTES: Final = 65_536
_COMMAND_S: Final = 20.0


class ValueReader:
    """The values of one server; what is not written into the settings is a secret."""

    def __init__(
        self,
        place: str,
        sources: Mapping[str, ValueSource],
        environ: Mapping[str, str],
        folder: Path,
        secrets: GivenSecrets,
    ) -> None:
        """Read `sources`; `place` is the setting that names them, `secrets` learns every secret."""
        self.place = place
        """The setting that names the values."""
        self._sources = sources
        self._environ = environ
        self._folder = folder
        self._secrets = secrets

    async def read(self) -> dict[str, str]:
        """Return every value by its name.

        Raises `NotSent` where one is missing.
        """
        return {name: await self._value(name, source) for name, source in self._sources.items()}

    async def read_headers(self) -> dict[str, str]:
        """Return every value by the name of its header.

        Raises `NotSent` where one is missing, or cannot be part of a header.
        """
        values = await self.read()
        for name, value in values.items():
            if not (value.isascii() and value.isprintable()):
                raise NotSent(f"the value of the header {name} cannot be sent")
        return values

    async def _value(self, name: str, source: ValueSource) -> str:
        if source.text is not None:
            return source.text
        place = f"{self.place}.{name}"
        if source.env is not None:
            value = self._environ.get(source.env)
            if value is None:
                raise NotSent(f"{place}: the environment variable {source.env} is not set")
        elif source.file is not None:
            value = _of_file(source.file, place)
        else:
            value = await asyncio.to_thread(self._of_command, source.command, place)
        if "\0" in value:
            raise NotSent(f"{place}: its value has a character that cannot be passed on")
        if value and source.is_secret:
            self._secrets.learn(self, value)
        return value

    def _of_command(self, command: tuple[str, ...], place: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - the operator's command, without a shell
                command,
                cwd=self._folder,
                env=dict(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=_COMMAND_S,
                check=False,
            )
        except OSError as error:
            raise NotSent(f"{place}: its command cannot be started: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise NotSent(f"{place}: its command did not end in time") from None
        if done.returncode:
            raise NotSent(f"{place}: its command ended with status {done.returncode}")
        return _text(done.stdout, place)


def _of_file(path: Path, place: str) -> str:
    try:
        with path.open("rb") as file:
            return _text(file.read(_MAX_BYTES + 1), place)
    except OSError:
        raise NotSent(f"{place}: its file cannot be read") from None


def _text(data: bytes, place: str) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotSent(f"{place}: its value is not text") from None
    if len(data) > _MAX_BYTES:
        raise NotSent(f"{place}: its value is longer than {_MAX_BYTES} bytes")
    return text.rstrip("\r\n")


# `GivenSecrets`: every secret value that servers were given, to redact it wherever they repeat it.
#
# A value in use is never forgotten. Of earlier ones, such as tokens that were renewed, the latest are kept.

# Values that no connection uses any more, of all servers.
_MAX_EARLIER: Final = 1024


class GivenSecrets:
    """The secret values of all servers."""

    def __init__(self, notice: Callable[[str], None] = lambda _: None) -> None:
        """Tell `notice` of each value that is new."""
        self._notice = notice
        # By the connection that uses them, so that they are in use for as long as it is.
        self._in_use: WeakKeyDictionary[object, set[str]] = WeakKeyDictionary()
        self._known: dict[str, None] = {}
        self._redact: Callable[[str], str] | None = None
        self._found: KnownValues | None = None

    def learn(self, user: object, value: str) -> None:
        """Remember a value while its `user` lives, and for some time after that."""
        self._in_use.setdefault(user, set()).add(value)
        is_new = value not in self._known
        self._known.pop(value, None)
        self._known[value] = None  # the latest is the last
        if is_new:
            self._forget_some()
            self._redact = self._found = None
            self._notice(value)

    def values(self) -> list[str]:
        """Return all of them."""
        return list(self._known)

    def redact(self, text: str) -> str:
        """Return a text of a server without them, and without what looks like a secret."""
        if self._redact is None:
            from portbook.redaction.redactor import Redactor

            self._redact = Redactor(secrets=self._known).redact_text
        return self._redact(text)

    def hide(self, text: str) -> str:
        """Return a text with a mark in place of each of them, and all else as it is. From any thread."""
        if not self._known:
            return text
        from portbook.redaction.known_secrets import KnownValues, has_views, views

        found = self._found
        if found is None:
            found = self._found = KnownValues(tuple(self._known))
        spans = sorted(found.spans(text))
        if not spans:
            is_escaped = has_views(text) and any(map(found.are_in, views(text)))
            return GIVEN_SECRET if is_escaped else text
        pieces, end = list[str](), 0
        for start, after in spans:
            if start >= end:
                pieces += [text[end:start], GIVEN_SECRET]
            end = max(end, after)
        return "".join((*pieces, text[end:]))

    def _forget_some(self) -> None:
        if len(self._known) <= _MAX_EARLIER:
            return
        used = set[str]().union(*self._in_use.values())
        earlier = [value for value in self._known if value not in used]
        for value in earlier[: max(len(earlier) - _MAX_EARLIER, 0)]:
            del self._known[value]
