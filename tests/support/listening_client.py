"""The client of a call that keeps what it is told and asked."""

from __future__ import annotations

from typing import Any

from portbook.model import Draft


class Listener:
    """A client that keeps what it is told, and answers yes."""

    def __init__(self) -> None:
        self.heard: list[tuple[object, ...]] = []
        self.capabilities: dict[str, Any] = {"elicitation": {}}
        self.is_waiting = False

    def lacks(self, request: Any) -> None:
        return None

    def hears(self, level: str) -> bool:
        return True

    def log(self, level: str, data: Draft[Any], logger: str | None) -> None:
        self.heard.append((level, data.finish(), logger))

    async def room(self) -> None: ...

    def flush(self) -> None: ...

    def report(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append((progress, total, message))

    async def ask(self, requests: Any, is_usable: Any) -> dict[str, Any]:
        self.heard.extend((name, each["params"]["message"]) for name, each in requests.items())
        return {name: {"action": "accept", "content": {}} for name in requests}

    def detach(self, message: str | None = None) -> bool:
        return False

    def let_go(self) -> None: ...

    def complete_elicitation(self, identifier: str) -> None: ...
