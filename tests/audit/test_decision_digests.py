"""What decided a call: anyone can compute it again."""

from __future__ import annotations

import hashlib
import json

from portbook.audit.decision_digests import Bases
from portbook.canonical import digest
from portbook.policy import Action, Decision, Policy
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect, ToolSpec

SPEC = ToolSpec("t", "Says.", {"type": "object"}, True, Effect.READ)
DECISION = Decision(Action.ALLOW, "default", "default", "")


def bases(spec: ToolSpec = SPEC, policy: str = "p" * 64) -> Bases:
    tool = Catalog([spec]).find("t")
    assert tool is not None
    return Bases(tool, Policy(digest=policy))


def test_the_basis_is_the_digest_of_the_digests_in_its_line() -> None:
    of = bases()
    found = of.of(DECISION)
    line = json.loads(of.fresh[0].as_line())
    assert line.pop("basis") == found
    assert line == {
        "definition_digest": digest(SPEC.definition()),
        "input_schema_digest": digest({"type": "object"}),
        "output_schema_digest": digest(True),
        "policy_digest": "p" * 64,
        "rule_digest": None,
    }
    written = json.dumps(line, sort_keys=True, separators=(",", ":")).encode()
    assert hashlib.sha256(written).hexdigest() == found


def test_a_basis_is_new_once_for_each_rule() -> None:
    of = bases()
    assert of.of(DECISION) == of.of(DECISION._replace(place="elsewhere"))
    assert len(of.fresh) == 1
    of.of(DECISION._replace(rule="another"))
    assert len(of.fresh) == 2


def test_a_schema_whose_numbers_would_be_rounded_has_no_digest() -> None:
    spec = ToolSpec("t", "Says.", {"type": "object", "maxProperties": 2**53 + 1}, True, Effect.READ)
    of = bases(spec)
    of.of(DECISION)
    assert (of.fresh[0].definition_digest, of.fresh[0].input_schema_digest) == (None, None)
    assert of.fresh[0].output_schema_digest is not None
