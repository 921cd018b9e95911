"""What the servers of clients offer, asked under the settings that they would have."""

from __future__ import annotations

import asyncio
import os
import tempfile
import tomllib
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from portbook.adopt.adopted_server import AdoptedServer, settings_text
from portbook.adopt.file_change import FileChange, read_if_there, write_file
from portbook.app.asked_servers import ask_servers, declared_servers
from portbook.cli.adopt_difference import masked
from portbook.cli.options import settings_from
from portbook.pins.on_change import OnChange
from portbook.pins.pin_lock import PinLock, approve
from portbook.pins.pinned_definitions import ServerDefinitions
from portbook.pins.standing import PinVerdicts, judge, without_attacks
from portbook.settings import CONFIG_NAME, Settings
from portbook.stores.lock_file import LOCK_NAME
from portbook.text.late_pattern import late_pattern
from portbook.upstreams.listed_definitions import Offer
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.trust import pinned_part

__all__ = ["AdoptOffers"]

_PRIVATE: Final = 0o600
_READABLE: Final = 0o644
# A variable that a client fills in from its own environment, with a default.
_VARIABLE: Final = late_pattern(r"\$\{(?:env:)?(\w+)(?::-([^}]*))?\}")
_LEAST_PASSWORD: Final = 4
_PATHS: Final = ("/", "./", "~/")
_LOGIN: Final = late_pattern(r"status 40[13]\b")


class AdoptOffers:
    """Servers with what they offer today."""

    def __init__(self, folder: Path, servers: list[AdoptedServer], *, is_confined: bool) -> None:
        """Ask all servers side by side; with `is_confined`, in the sandbox that a trial proposes for each."""
        self._folder = folder
        self._settings = read_if_there(folder / CONFIG_NAME)
        self._lock = read_if_there(folder / LOCK_NAME)
        self._known = tomllib.loads((self._settings or b"").decode()).get("mcp", {})
        self.servers = servers
        self.answers: dict[str, ServerDefinitions | str] = {}
        """By alias, what a server offers, or why it cannot be adopted."""
        if servers and is_confined:
            self._try_out()
        if servers:
            self._ask()

    @property
    def adopted(self) -> list[AdoptedServer]:
        """Return the servers that have said what they offer."""
        return [each for each in self.servers if isinstance(self.answers.get(each.alias), ServerDefinitions)]

    def verdicts(self, alias: str) -> PinVerdicts:
        """Return how the definitions of a server stand before they are approved."""
        observed = self.answers[alias]
        if isinstance(observed, str):
            return {}
        others = {
            other: [*each.tools]
            for other, each in self.answers.items()
            if other != alias and isinstance(each, ServerDefinitions)
        }
        return judge(PinLock.read(self._folder).servers.get(alias), observed, OnChange(), others)

    def files(self) -> tuple[FileChange, ...]:
        """Return the settings, the secrets and the lock as they are to be, where they differ."""
        clean: Mapping[str, ServerDefinitions] = {
            server.alias: without_attacks(offered, self.verdicts(server.alias))
            for server in self.servers
            if isinstance(offered := self.answers[server.alias], ServerDefinitions)
        }
        with tempfile.TemporaryDirectory(prefix="portbook-adopt-") as name:
            if self._lock is not None:
                write_file(Path(name) / LOCK_NAME, self._lock, _PRIVATE)
            approve(Path(name), clean)
            lock = (Path(name) / LOCK_NAME).read_bytes()
        changes = [
            *self._drafts(self.adopted),
            FileChange(self._folder / LOCK_NAME, self._lock, lock, _READABLE),
        ]
        return tuple(change for change in changes if change.before != change.after)

    def _try_out(self) -> None:
        """Give each new server the sandbox that it needs; one that cannot be tried out is not adopted."""
        from portbook.app.sandbox_trial import NoTrial, try_out  # late: few adoptions need it

        new = [each for each in self.servers if each.found[0].command and each.alias not in self._known]
        with self._drafted(new) as (settings, declared):
            outcomes = try_out(settings, declared.values(), self._environ())
        for at, server in enumerate(self.servers):
            outcome = outcomes.get(server.alias)
            if isinstance(outcome, NoTrial):
                self.answers[server.alias] = f"no sandbox could be proposed for it: {outcome}"
            elif outcome is not None:
                # Whole paths: a client may start Portbook with a different home.
                self.servers[at] = replace(server, sandbox=outcome.as_data())

    def _ask(self) -> None:
        left = [each for each in self.servers if each.alias not in self.answers]
        with self._drafted(left) as (settings, declared):
            answers = asyncio.run(ask_servers(settings, declared.values(), self._environ()))
        for alias, answer in answers.items():
            self.answers[alias] = (
                pinned_part(declared[alias], answer)
                if isinstance(answer, Offer)
                else masked(_why_not(answer), self._untold(alias))
            )

    def _untold(self, alias: str) -> set[str]:
        """Return values of a server's variables that its last words must not show: any may be a password.

        A path is told, because it is what a server most often complains of; a very short value is in words.
        """
        entries = (found for each in self.servers if each.alias == alias for found in each.found)
        values = {value for found in entries for _, value in found.env}
        return {each for each in values if len(each) >= _LEAST_PASSWORD and not each.startswith(_PATHS)}

    @contextmanager
    def _drafted(
        self, servers: list[AdoptedServer]
    ) -> Generator[tuple[Settings, dict[str, DeclaredUpstream]]]:
        """Write the settings of some servers where nobody sees them; yield them, and the servers by alias."""
        with tempfile.TemporaryDirectory(prefix="portbook-adopt-") as name:
            draft = Path(name)
            for change in self._drafts(servers):
                write_file(draft / change.path.relative_to(self._folder), change.after, _PRIVATE)
            settings = settings_from(draft / CONFIG_NAME)
            wanted = {server.alias for server in servers}
            yield settings, {each.alias: each for each in declared_servers(settings) if each.alias in wanted}

    def _environ(self) -> dict[str, str]:
        environ = dict(os.environ)
        for server in self.servers:
            for name, value in server.values_of(server.found[0]).items():
                environ[name] = _VARIABLE.sub(lambda found: os.environ.get(found[1], found[2] or ""), value)
        return environ

    def _drafts(self, servers: list[AdoptedServer]) -> Iterator[FileChange]:
        for server in servers:
            for name, value in server.secrets.items():
                path = self._folder / name
                yield FileChange(path, read_if_there(path), value.encode(), _PRIVATE)
        before = None if self._settings is None else self._settings.decode()
        text = settings_text(before, servers, self._known, str(self._folder / "runs"))
        yield FileChange(self._folder / CONFIG_NAME, self._settings, text.encode(), _READABLE)


def _why_not(problem: str) -> str:
    if _LOGIN.search(problem):
        return "its login belongs to the client"
    return f"it could not be asked: {problem}"
