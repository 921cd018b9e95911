"""The ready file: it exists while the process serves, and only then."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["ReadyFile"]


class ReadyFile:
    """Holds the process id and the time when the process became ready; removed when the block ends.

    It is written atomically. If it cannot be written, the process warns and serves. The file of a different
    process is never removed.
    """

    def __init__(self, path: Path | None, now: str, warn: Callable[[str], None]) -> None:
        self._path = path
        self._content = f"{os.getpid()} {now}\n"
        self._warn = warn

    def __enter__(self) -> Self:
        if self._path is None:
            return self
        try:
            descriptor, draft = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                    file.write(self._content)
                    os.fchmod(descriptor, 0o644)
                Path(draft).replace(self._path)
            except BaseException:
                Path(draft).unlink(missing_ok=True)
                raise
        except OSError as error:
            self._warn(f"{self._path}: the ready file cannot be written: {error.strerror}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the file, if it is still the one that this process wrote."""
        with contextlib.suppress(OSError):
            if self._path is not None and self._path.read_text("utf-8") == self._content:
                self._path.unlink()
