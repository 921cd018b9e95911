"""`CallEnvelopes`: builds the envelope of a call from its caller's wishes and the facts of the run.

Pure: no I/O. The envelope is the same, byte for byte, at every door and in every contract.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.envelope.controls import CONTROLS, Controls, Default, read_controls
from portbook.errors import Ending
from portbook.model import JSON, EnvelopeRequest, JSONObject
from portbook.provenance.occasion import Occasion
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Tool

if TYPE_CHECKING:
    from portbook.provenance.signing import Signer

__all__ = ["CallEnvelopes", "KnownRun"]

# Enough digits of a definition's digest to distinguish versions of a tool.
_VERSION_DIGITS: Final = 12


class KnownRun(NamedTuple):
    """The facts that the boundary knows about a run."""

    tool: Tool
    arguments: JSONObject
    policy_digest: str
    rule: str
    rule_digest: str | None
    occasion: Occasion
    is_redacted: bool = False
    """Whether a secret was redacted in what the call gives its caller."""


class CallEnvelopes:
    """Wraps outcomes of calls in envelopes, where the caller or the settings ask for it."""

    __slots__ = ("_default", "is_default", "signer")

    def __init__(self, default: Default = "off", signer: Signer | None = None) -> None:
        """Use `default` for callers that ask for nothing, and `signer` to sign records, if given."""
        self._default: Default = default
        self.is_default = default != "off"
        """Whether a caller that asks for nothing gets an envelope."""
        self.signer = signer
        """Signs records of provenance; None where they are not signed."""

    def controls_of(self, wish: EnvelopeRequest | None) -> Controls | None:
        """Return the controls of the envelope, or None where no envelope is wanted."""
        if self._default == "off" and (wish is None or not (wish.is_required or _asks(wish.meta))):
            return None  # nearly every call
        wish = wish or EnvelopeRequest()
        default: Default = "wrap" if wish.is_required and self._default == "off" else self._default
        limit: Any = wish.preferences.get("max_output_bytes")
        return read_controls(
            wish.meta,
            default,
            deterministic=wish.preferences.get("deterministic", True) is not False,
            max_output_bytes=None if limit is None else int(limit),  # 1e3 is an integer to JSON Schema
            is_required=wish.is_required,
        )

    def enclose(
        self, outcome: JSON | Ending, controls: Controls, wish: EnvelopeRequest | None, known: KnownRun
    ) -> JSONObject:
        """Return the envelope of an outcome; a warning says where it was redacted."""
        # Late: few calls want an envelope, and most servers never make one.
        from portbook.envelope.enclose import enclose
        from portbook.envelope.problems import REDACTED, Problem
        from portbook.provenance.artifacts import referred_artifact
        from portbook.provenance.subject import Subject

        if known.is_redacted and not isinstance(outcome, Ending):
            redacted = Problem(REDACTED, "Secrets were redacted in what this call returned or reported.")
            controls = replace(controls, warnings=(*controls.warnings, redacted))
        wish = wish or EnvelopeRequest()
        definition, input_schema, output_schema = known.tool.digests
        subject = Subject(
            tool=known.tool.spec.name,
            version="unknown" if definition is None else f"sha256:{definition[:_VERSION_DIGITS]}",
            arguments=known.arguments,
            artifacts=tuple(
                referred_artifact(cast("JSONObject", reference), place)
                for place, reference in enumerate(wish.artifacts)
            ),
            request_id=wish.request_id,
            definition_digest=definition,
            input_schema_digest=input_schema,
            output_schema_digest=output_schema,
            policy_digest=known.policy_digest,
            rule=known.rule,
            rule_digest=known.rule_digest,
            occasion=known.occasion,
        )
        return enclose(outcome, controls, subject, self.signer)


def _asks(meta: JSON) -> bool:
    return isinstance(meta, dict) and not CONTROLS.isdisjoint(meta)
