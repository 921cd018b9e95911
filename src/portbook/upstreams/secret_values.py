"""Reads the values of variables and headers where the settings say they are, each time a server starts."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from portbook.upstreams.declared_upstream import ValueSource
from portbook.upstreams.given_secrets import GivenSecrets
from portbook.upstreams.transport import NotSent

__all__ = ["ValueReader"]

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
