"""What decided a call: the digests of the tool's definition, of the policy and of the rule. Pure: no I/O.

A record holds one digest for all of them, the basis: it is the same for every call of a tool under a policy.
A line of its own, once in a run, says which digests it is made of. All are plain SHA-256, of what is public:
anyone who has the same can compute them again.
"""

from __future__ import annotations

from portbook.audit.record_views_and_fields import shown_json
from portbook.canonical import canonical_bytes
from portbook.policy import Decision, Policy
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import sha256
from portbook.tools.catalog import Tool

__all__ = ["Bases", "Basis"]


class Basis(NamedTuple):
    """The digests of what decided a call; None where something has none: RFC 8785 would round a number."""

    definition_digest: str | None
    """Of the tool's definition, its schemas included."""
    input_schema_digest: str | None
    output_schema_digest: str | None
    policy_digest: str
    rule_digest: str | None
    """Of the rule that decided; None where a limit or the default did."""

    @property
    def digest(self) -> str:
        """Return the digest of these digests."""
        return sha256(canonical_bytes(self._asdict())).hexdigest()

    def as_line(self) -> bytes:
        """Return the line that explains the digest."""
        return shown_json({"basis": self.digest, **self._asdict()})


class Bases:
    """The bases of the calls of one tool under one policy."""

    __slots__ = ("_digests", "_policy", "_tool", "fresh")

    def __init__(self, tool: Tool, policy: Policy) -> None:
        self._tool = tool
        self._policy = policy
        self._digests: dict[str, str] = {}
        self.fresh: list[Basis] = []
        """Those that no line explains yet."""

    def of(self, decision: Decision) -> str:
        """Return the basis of a call on which the rule of `decision` decided."""
        found = self._digests.get(decision.rule)
        if found is None:
            policy = self._policy
            basis = Basis(*self._tool.digests, policy.digest, policy.digest_of_rule(decision.rule))
            found = self._digests[decision.rule] = basis.digest
            self.fresh.append(basis)
        return found
