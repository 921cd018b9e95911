"""Artifacts: the inputs and outputs of a run, each with an id, a media type and an optional digest.

A digest of JSON is computed from its RFC 8785 form, so that it does not depend on the writer. Other digests,
for example of text, are computed from the bytes. Pure: no I/O.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from portbook.canonical import jcs_bytes
from portbook.model import JSON, JSONObject
from portbook.provenance.require_length import require_length

__all__ = [
    "ARTIFACT",
    "BYTES_TYPE",
    "CLAIMED",
    "JSON_TYPE",
    "SCHEMA_TYPE",
    "TEXT_TYPE",
    "Artifact",
    "Digest",
    "artifact_of",
    "digest_of",
    "digested_bytes",
    "is_json",
]

ARTIFACT: Final = "artifact.v0.1"

JSON_TYPE: Final = "application/json"
SCHEMA_TYPE: Final = "application/schema+json"
TEXT_TYPE: Final = "text/plain"
BYTES_TYPE: Final = "application/octet-stream"

# The label of a digest that a third party claims, not computed here.
CLAIMED: Final = "claimed"


@dataclass(frozen=True, slots=True)
class Digest:
    """A digest and its algorithm."""

    alg: str
    value: str

    def to_json(self) -> JSONObject:
        """Return the form of the artifact schema."""
        return {"alg": self.alg, "value": self.value}


@dataclass(frozen=True, slots=True)
class Artifact:
    """One artifact."""

    artifact_id: str
    media_type: str
    locator: str | None = None
    size_bytes: int | None = None
    digest: Digest | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        """Raise `ValueError` for a value of invalid length."""
        require_length("artifact_id", self.artifact_id, 1000)
        require_length("media_type", self.media_type, 200)
        require_length("locator", self.locator, 4000)
        for label in self.labels.values():
            require_length("labels", label, 200, 0)

    @property
    def is_claimed(self) -> bool:
        """Return whether its digest is the claim of a third party, not computed here."""
        return self.labels.get("digest") == CLAIMED

    def to_json(self) -> JSONObject:
        """Return the form of the artifact schema."""
        optional: dict[str, JSON] = {
            "locator": self.locator,
            "size_bytes": self.size_bytes,
            "digest": None if self.digest is None else self.digest.to_json(),
            "labels": dict(self.labels) or None,
        }
        return {
            "schema_version": ARTIFACT,
            "artifact_id": self.artifact_id,
            "media_type": self.media_type,
            **{name: value for name, value in optional.items() if value is not None},
        }


def artifact_of(
    artifact_id: str,
    content: JSON | bytes,
    *,
    is_digested: bool,
    media_type: str | None = None,
    locator: str | None = None,
    labels: Mapping[str, str] | None = None,
) -> Artifact:
    """Return the artifact with this content: text, bytes, or any other JSON value.

    Raises `NotJSON` where a digest is requested and RFC 8785 cannot represent the content.
    """
    if media_type is None:
        media_type = (
            TEXT_TYPE if isinstance(content, str) else BYTES_TYPE if isinstance(content, bytes) else JSON_TYPE
        )
    size, digest = None, None
    if is_digested:
        digested = digested_bytes(content, media_type)
        size, digest = len(digested), Digest("sha256", hashlib.sha256(digested).hexdigest())
    return Artifact(artifact_id, media_type, locator, size, digest, labels or {})


def digest_of(value: Any) -> Digest:
    """Return the digest of a JSON value.

    Raises `NotJSON` where RFC 8785 cannot represent it.
    """
    return Digest("sha256", hashlib.sha256(jcs_bytes(value)).hexdigest())


def digested_bytes(content: JSON | bytes, media_type: str) -> bytes:
    """Return the bytes that the digest of `content` is computed from.

    Raises `NotJSON` where the content is JSON that RFC 8785 cannot represent.
    """
    if isinstance(content, bytes):
        return content
    if isinstance(content, str) and not is_json(media_type):
        return content.encode()
    return jcs_bytes(content)


def is_json(media_type: str) -> bool:
    """Return whether a media type is JSON."""
    kind = media_type.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or kind.endswith("+json")
