"""`BadSettings`: settings that cannot be used, and the list of all that is wrong. Pure: no I/O."""

from __future__ import annotations

from typing import Any

__all__ = ["BadSettings", "ProblemList"]


class BadSettings(ValueError):
    """Settings that cannot be used; each of the problems names its place and says what to do."""

    def __init__(self, *problems: str, rest: Any = None) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.rest = rest
        """The settings without the values that are wrong, where a file could be read: more may be wrong."""


class ProblemList:
    """What is wrong with what an operator wrote, all of which is told at once: `with problems:` collects."""

    def __init__(self, *kinds: type[Exception]) -> None:
        """Collect exceptions of these `kinds`."""
        self._kinds = kinds
        self._found: list[Exception] = []

    def __enter__(self) -> None:
        """Begin a block, after which it goes on whatever is wrong."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Note the exception of the block; others than those of the list pass."""
        if not isinstance(error, self._kinds):
            return False
        self._found.append(error)
        return True

    def texts(self) -> list[str]:
        """Return every problem, each once."""
        found = (error.problems if isinstance(error, BadSettings) else (str(error),) for error in self._found)
        return list(dict.fromkeys(text for texts in found for text in texts))

    def raise_all(self) -> None:
        """Raise the exception that was noted, or `BadSettings` with the problems of several."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise BadSettings(*self.texts())
