"""JSON values, subjects and keys that the tests of envelopes share."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from portbook import SigningKey, Subject
from portbook.model import Occasion
from portbook.provenance.artifacts import Artifact, Digest

KEY = SigningKey(bytes(range(32)))
OTHER_KEY = SigningKey(bytes(range(1, 33)))

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text
)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(text | st.just("schema_version"), inner, max_size=4)


json_values = st.recursive(scalars, containers, max_leaves=10)

SUBJECT = Subject(
    "docs.search",
    "1.0",
    arguments={"query": "harbour", "topK": 3},
    artifacts=(
        Artifact("notes", "text/plain", "file:notes.txt"),
        Artifact("claimed", "text/plain", digest=Digest("blake3", "0" * 64), labels={"digest": "claimed"}),
    ),
    definition_digest="1" * 64,
    input_schema_digest="2" * 64,
    output_schema_digest="3" * 64,
    policy_digest="4" * 64,
    rule="reads",
    occasion=Occasion("random", "2026-03-01T00:00:00.000Z", 12.6),
)
