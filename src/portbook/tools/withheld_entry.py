"""`WithheldEntry`: an entry of an MCP server that is not served until a person approves it. Pure: no I/O."""

from __future__ import annotations

from portbook.errors import Reason, Refused
from portbook.model import JSONObject, Kind
from portbook.text.named_tuple import NamedTuple

__all__ = ["WithheldEntry"]


class WithheldEntry(NamedTuple):
    """An entry that is not listed, and whose calls are refused."""

    kind: Kind
    name: str
    """Its canonical name, a prompt's name."""
    other_names: frozenset[str]
    """Further names by which MCP clients would call a tool."""
    told: JSONObject
    """What a caller is told: nothing that the server wrote."""
    recorded: JSONObject
    """What the record has: the difference from what was approved."""
    reason: Reason = Reason.TOOL_WITHHELD

    def refusal(self) -> Refused:
        """Return the refusal of a call."""
        refused = Refused(self.reason, details=self.told)
        refused.difference = self.recorded
        return refused
