"""Portbook: the governed boundary between AI agents and their tools."""

from __future__ import annotations

from portbook.version import __version__

TYPE_CHECKING = False  # `typing` takes as long to import as all of this
if TYPE_CHECKING:
    from typing import Any

    from portbook.canonical import NotJSON
    from portbook.doors.http.mounted_asgi_app import MountedApp
    from portbook.envelope.envelope_check import inspect_envelope
    from portbook.envelope.errors_and_warnings import Problem
    from portbook.envelope.request_for_envelope import Controls
    from portbook.envelope.result_put_into_envelope import (
        Failure,
        NotAnEnvelope,
        ToolFailed,
        enclose,
        failure,
        unwrap,
        wrap,
    )
    from portbook.errors import CanonicalError, Failed
    from portbook.provenance.record_inputs_and_outputs import Subject
    from portbook.provenance.signing import BadKey, PublicKey, SigningKey
    from portbook.tools.content_blocks import Blob, Content, Embedded, Message, ResourceLink, Text
    from portbook.tools.context import Context
    from portbook.tools.contract_registry import BadBundle, SchemaRegistry
    from portbook.tools.images_and_audio import Audio, Image
    from portbook.tools.questions import Form, OpenPage, Roots, Sample
    from portbook.tools.spec import BadTool, NotFound, ToolError
    from portbook.tools.toolset import Toolset

__all__ = [
    "Audio",
    "BadBundle",
    "BadKey",
    "BadTool",
    "Blob",
    "CanonicalError",
    "Content",
    "Context",
    "Controls",
    "Embedded",
    "Failed",
    "Failure",
    "Form",
    "Image",
    "Message",
    "MountedApp",
    "NotAnEnvelope",
    "NotFound",
    "NotJSON",
    "OpenPage",
    "Problem",
    "PublicKey",
    "ResourceLink",
    "Roots",
    "Sample",
    "SchemaRegistry",
    "SigningKey",
    "Subject",
    "Text",
    "ToolError",
    "ToolFailed",
    "Toolset",
    "__version__",
    "enclose",
    "failure",
    "inspect_envelope",
    "unwrap",
    "wrap",
]

_HOMES = {
    **dict.fromkeys(
        ("Blob", "Content", "Embedded", "Message", "ResourceLink", "Text"),
        "portbook.tools.content_blocks",
    ),
    **dict.fromkeys(("Audio", "Image"), "portbook.tools.images_and_audio"),
    **dict.fromkeys(("Form", "OpenPage", "Roots", "Sample"), "portbook.tools.questions"),
    "BadBundle": "portbook.tools.contract_registry",
    "BadKey": "portbook.provenance.signing",
    "BadTool": "portbook.tools.spec",
    "CanonicalError": "portbook.errors",
    "Context": "portbook.tools.context",
    "Controls": "portbook.envelope.request_for_envelope",
    "Failed": "portbook.errors",
    "Failure": "portbook.envelope.result_put_into_envelope",
    "MountedApp": "portbook.doors.http.mounted_asgi_app",
    "NotAnEnvelope": "portbook.envelope.result_put_into_envelope",
    "NotFound": "portbook.tools.spec",
    "NotJSON": "portbook.canonical",
    "Problem": "portbook.envelope.errors_and_warnings",
    "PublicKey": "portbook.provenance.signing",
    "SchemaRegistry": "portbook.tools.contract_registry",
    "ToolError": "portbook.tools.spec",
    "SigningKey": "portbook.provenance.signing",
    "Subject": "portbook.provenance.record_inputs_and_outputs",
    "ToolFailed": "portbook.envelope.result_put_into_envelope",
    "Toolset": "portbook.tools.toolset",
    "enclose": "portbook.envelope.result_put_into_envelope",
    "failure": "portbook.envelope.result_put_into_envelope",
    "inspect_envelope": "portbook.envelope.envelope_check",
    "unwrap": "portbook.envelope.result_put_into_envelope",
    "wrap": "portbook.envelope.result_put_into_envelope",
}


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    # Loaded when first asked for, so that `portbook --version` does not pay for a schema engine.
    if name not in _HOMES:
        raise AttributeError(f"module 'portbook' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
