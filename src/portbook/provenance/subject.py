"""What is known about a run, except its outcome. Pure: no I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from portbook.model import JSON, Occasion
from portbook.provenance import method_ids
from portbook.provenance.anchors import Evidence
from portbook.provenance.artifacts import Artifact
from portbook.provenance.require_length import require_length

__all__ = ["Subject"]

_DIGESTS: Final = (
    "definition_digest",
    "input_schema_digest",
    "output_schema_digest",
    "policy_digest",
    "rule_digest",
)
_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UNKNOWN: Final = Occasion()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is known about a run, except its outcome; the same at every door."""

    tool: str
    version: str = "unknown"
    adapter: str = "portbook"
    arguments: JSON = None
    """The tool's arguments; None where they are unknown."""
    artifacts: tuple[Artifact, ...] = ()
    """Further inputs, such as the artifacts that a request names."""
    request_id: str | None = None
    """The id that the caller gave its request."""
    definition_digest: str | None = None
    """This and the next three: sha256 in hexadecimal of the RFC 8785 form."""
    input_schema_digest: str | None = None
    output_schema_digest: str | None = None
    policy_digest: str | None = None
    rule: str | None = None
    """The name of the policy rule that decided the call."""
    rule_digest: str | None = None
    methods: tuple[str, ...] = ()
    """Method ids to add to those that the record adds itself."""
    evidence: tuple[Evidence, ...] = ()
    occasion: Occasion = _UNKNOWN

    def __post_init__(self) -> None:
        """Raise `ValueError` for a value that a record must not hold."""
        require_length("tool", self.tool, 200)
        require_length("version", self.version, 100)
        require_length("adapter", self.adapter, 100)
        require_length("request_id", self.request_id, 200, 0)
        for name in _DIGESTS:
            value = getattr(self, name)
            if value is not None and _SHA256.fullmatch(value) is None:
                raise ValueError(f"{name}: must be 64 lower-case hexadecimal digits")
        for method in self.methods:
            if flaw := method_ids.flaw_of(method):
                raise ValueError(f"methods: {method[:60]!r} {flaw}")
