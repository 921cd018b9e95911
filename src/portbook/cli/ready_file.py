"""The ready file: there while the process answers, and only then."""

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
    """Holds the process's number and when it became ready; gone when the block ends, however it ends.

    It appears whole. Where it cannot be written, that is said, and the process serves all the same. Another
    process's file is never removed.
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
        """Remove the file, where it is still this process's own."""
        with contextlib.suppress(OSError):
            if self._path is not None and self._path.read_text("utf-8") == self._content:
                self._path.unlink()
