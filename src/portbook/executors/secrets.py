"""Secrets from the environment and from files. Files are read again when they change, as a rotation does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from portbook.apis.gateway import Secret

__all__ = ["NoCredential", "SecretValue"]

# Longer than any key or token that a header could hold at common servers.
_MAX_BYTES: Final = 16_384
# How many earlier values are remembered, so that they are still recognised as secrets.
_REMEMBERED: Final = 4


class NoCredential(Exception):
    """A credential that is not there or cannot be sent; the message says which one, and nothing of it."""


class SecretValue:
    """One secret: its value now, and those it had."""

    def __init__(
        self, place: str, secret: Secret, environ: Mapping[str, str], notice: Callable[[str], None]
    ) -> None:
        """Take `place`, the setting that names it, for messages; `notice` is told every new value."""
        self._place = place
        self._secret = secret
        self._environ = environ
        self._notice = notice
        self._stamp: tuple[int, int, int] | None = None
        self._values: list[str] = []

    def read(self) -> str:
        """Return the secret as it is now.

        Raises `NoCredential` where there is none, or none that a header can hold.
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
        """Return every value that it is known to have had, the newest last."""
        return list(self._values)

    def _take(self, text: str | None) -> str:
        if text is None:
            raise NoCredential(f"{self._place}: the environment variable {self._secret.env} is not set")
        value = text.strip()
        if not value or len(value) > _MAX_BYTES or not (value.isascii() and value.isprintable()):
            raise NoCredential(f"{self._place}: must be one line of printable ASCII, and not empty")
        if value not in self._values:
            self._values = [*self._values, value][-_REMEMBERED:]
            self._notice(value)
        return value
