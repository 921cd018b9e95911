"""What `portbook adopt --json` prints. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from portbook.app.offered_decisions import OfferedDecision
from portbook.cli.adopt_candidates import Survey
from portbook.cli.adopt_report import ServerRow
from portbook.model import JSON, JSONObject

__all__ = ["decisions_data", "survey_data"]


def survey_data(survey: Survey) -> JSONObject:
    """Return the servers that were found, and what could not be read."""
    return {
        "settings": str(survey.settings),
        "servers": [_server(row) for row in survey.rows],
        "warnings": [*survey.problems],
    }


def decisions_data(decisions: Iterable[OfferedDecision], withheld: dict[str, int]) -> JSONObject:
    """Return what happens to a call of each tool, and how many tools the scan withholds by server."""
    found: list[JSON] = [
        {
            "server": each.server,
            "tool": each.name.partition(".")[2],
            "effect": each.effect.value,
            "action": each.action.value,
        }
        for each in decisions
    ]
    return {"decisions": found, "withheld": dict[str, JSON](withheld)}


def _server(row: ServerRow) -> JSONObject:
    found, server, destructive = row.found, row.server, row.destructive
    clients = set[str]() if server is None else {each.place.client.name for each in server.found}
    return {
        "client": found.place.client.name,
        "file": str(found.place.file),
        "name": found.name,
        "alias": None if server is None else server.alias,
        "starts": found.shown,
        "tools": None if row.offered is None else len(row.offered.tools),
        "destructive": [*destructive.names],
        "do_not_say": destructive.open,
        "withheld": sum(each.is_quarantined for each in row.verdicts.values()),
        "secrets": found.clear_secrets,
        "clients": [*sorted(clients)],
        "sandbox": None if server is None else server.sandbox,
        "left": row.left,
    }
