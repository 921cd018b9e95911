"""`CallEnvelopes`: builds the envelope of a call from its caller's wishes and the facts of the run.

Pure: no I/O. The envelope is the same, byte for byte, at every door and in every contract.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.canonical import NotJSON
from portbook.errors import Ending
from portbook.model import ENVELOPE_CONTROLS, JSON, EnvelopeRequest, JSONObject, Occasion
from portbook.text.named_tuple import NamedTuple
from portbook.tools.catalog import Tool

if TYPE_CHECKING:
    from portbook.envelope.request_for_envelope import Controls, Default
    from portbook.envelope.result_put_into_envelope import RecordedResults
    from portbook.provenance.record_inputs_and_outputs import Subject
    from portbook.provenance.signing import Signer

__all__ = ["CallEnvelopes", "KnownRun"]

# Enough digits of a definition's digest to distinguish versions of a tool.
_VERSION_DIGITS: Final = 12

_NO_REQUEST: Final = EnvelopeRequest()
_NO_FORM: Final = (None, None)

# How many forms of records are kept, of some 3 KiB each: few servers have as many tools. Without a limit,
# those of tools that servers behind us rename would stay.
_MAX_FORMS: Final = 1_024


@cache
def _reading() -> tuple[Callable[[Controls], bool], Callable[..., Controls]]:
    """Return what reads controls, imported once: late, because most servers never make an envelope."""
    from portbook.envelope.request_for_envelope import are_plain, read_controls

    return are_plain, read_controls


class KnownRun(NamedTuple):
    """The facts that the boundary knows about a run."""

    tool: Tool
    arguments: JSONObject
    policy_digest: str
    rule: str
    digest_of_rule: Callable[[str], str | None]
    """Returns the digest of the rule of this name; None where it is the name of a limit."""
    occasion: Occasion
    is_redacted: bool = False
    """Whether a secret was redacted in what the call gives its caller."""


class CallEnvelopes:
    """Wraps outcomes of calls in envelopes, where the caller or the settings ask for it."""

    __slots__ = ("_default", "_forms", "is_default", "signer")

    def __init__(self, default: Default = "off", signer: Signer | None = None) -> None:
        """Use `default` for callers that ask for nothing, and `signer` to sign records, if given."""
        self._default: Default = default
        self.is_default = default != "off"
        """Whether a caller that asks for nothing gets an envelope."""
        self.signer = signer
        """Signs records of provenance; None where they are not signed."""
        self._forms: dict[tuple[str, str, str, str, str, bool], tuple[Tool, RecordedResults]] = {}
        """What encloses results, by kind, tool, policy, rule and mode, and whether they are texts."""

    def controls_of(self, wish: EnvelopeRequest | None) -> Controls | None:
        """Return the controls of the envelope, or None where no envelope is wanted."""
        if self._default == "off" and (wish is None or not (wish.is_required or _asks(wish.meta))):
            return None  # nearly every call
        _, read_controls = _reading()
        wish = wish or _NO_REQUEST
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
        are_plain, _ = _reading()
        wish = wish or _NO_REQUEST
        if are_plain(controls) and not (known.is_redacted or wish.artifacts or isinstance(outcome, Ending)):
            try:
                return self._form_of(outcome, controls, known).enclose(
                    outcome, known.arguments, wish.request_id
                )
            except NotJSON:  # a warning says so, below
                pass
        # Late: few calls want an envelope, and most servers never make one.
        from portbook.envelope.errors_and_warnings import redaction_warnings
        from portbook.envelope.result_put_into_envelope import enclose

        if told := redaction_warnings(outcome, is_redacted=known.is_redacted):
            controls = replace(controls, warnings=(*controls.warnings, *told))
        return enclose(outcome, controls, _subject(wish, known), self.signer)

    def _form_of(self, result: JSON, controls: Controls, known: KnownRun) -> RecordedResults:
        """Return what encloses the results of a tool, made with the first of them.

        Raises `NotJSON` where RFC 8785 cannot represent a part of their records.
        """
        tool = known.tool
        spec = tool.spec
        key = (
            spec.kind,
            spec.name,
            known.policy_digest,
            known.rule,
            controls.provenance_mode,
            isinstance(result, str),
        )
        made_for, form = self._forms.get(key, _NO_FORM)
        if form is None or made_for is not tool:  # a server behind us may change what it offers
            from portbook.envelope.result_put_into_envelope import RecordedResults  # late, as above

            subject = _subject(_NO_REQUEST, known._replace(arguments={}))  # a form keeps no arguments
            form = RecordedResults(result, controls, subject, self.signer)
            if len(self._forms) >= _MAX_FORMS and key not in self._forms:
                del self._forms[next(iter(self._forms))]  # the oldest
            self._forms[key] = tool, form
        return form


def _subject(wish: EnvelopeRequest, known: KnownRun) -> Subject:
    """Return what is known about a run, in the form of provenance."""
    from portbook.provenance.record_inputs_and_outputs import Subject, referred_artifact

    definition, input_schema, output_schema = known.tool.digests
    return Subject(
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
        rule_digest=known.digest_of_rule(known.rule),
        occasion=known.occasion,
    )


def _asks(meta: JSON) -> bool:
    return isinstance(meta, dict) and not ENVELOPE_CONTROLS.isdisjoint(meta)
