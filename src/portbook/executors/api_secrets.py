"""Secrets from the environment and from files. A file is read again when it changes, as in a rotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from portbook.apis.gateway import Secret

__all__ = ["REMEMBERED", "NoCredential", "SecretValue"]

# Longer than any key or token that common servers accept in a header.
_MAX_BYTES: Final = 16_384
# How many earlier values are kept, so that they are still redacted.
REMEMBERED: Final = 4


class NoCredential(Exception):
    """A credential that is missing or cannot be sent; the message names it, and never quotes it."""


class SecretValue:
    """One secret: its current value and earlier ones."""

    def __init__(
        self, place: str, secret: Secret, environ: Mapping[str, str], notice: Callable[[str], None]
    ) -> None:
        """Use `place`, the setting that names it, in messages; `notice` is called with every new value."""
        self._place = place
        self._secret = secret
        self._environ = environ
        self._notice = notice
        self._stamp: tuple[int, int, int] | None = None
        self._values: list[str] = []

    def read(self) -> str:
        """Return the current value.

        Raises `NoCredential` where there is none, or a header cannot hold it.
        """
        if self._secret.env is not None:
            return self._values[-1] if self._values else self._take(self._environ.get(self._secret.env))
        path = self._secret.file
        assert path is not None
        try:
            stat = path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if stamp == self._stamp:
                return self._values[-1]
            with path.open("rb") as file:
                data = file.read(_MAX_BYTES + 1)
        except OSError:
            raise NoCredential(f"{self._place}: its file cannot be read") from None
        value = self._take(data.decode("utf-8", "replace"))
        self._stamp = stamp
        return value

    def known(self) -> list[str]:
        """Return the current and the earlier values, newest last."""
        return list(self._values)

    def _take(self, text: str | None) -> str:
        if text is None:
            raise NoCredential(f"{self._place}: the environment variable {self._secret.env} is not set")
        value = text.strip()
        if not value or len(value) > _MAX_BYTES or not (value.isascii() and value.isprintable()):
            raise NoCredential(f"{self._place}: must be one line of printable ASCII, and not empty")
        if value not in self._values:
            self._values = [*self._values, value][-REMEMBERED:]
            self._notice(value)
        return value
