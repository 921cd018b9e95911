"""Portbook: the governed boundary between AI agents and their tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from portbook.version import __version__

if TYPE_CHECKING:
    from portbook.errors import CanonicalError
    from portbook.tools.content import Audio, Blob, Content, Embedded, Image, Message, ResourceLink, Text
    from portbook.tools.context import Context
    from portbook.tools.questions import Form, OpenPage, Roots, Sample
    from portbook.tools.registry import SchemaRegistry
    from portbook.tools.spec import ToolError
    from portbook.tools.toolset import Toolset

__all__ = [
    "Audio",
    "Blob",
    "CanonicalError",
    "Content",
    "Context",
    "Embedded",
    "Form",
    "Image",
    "Message",
    "OpenPage",
    "ResourceLink",
    "Roots",
    "Sample",
    "SchemaRegistry",
    "Text",
    "ToolError",
    "Toolset",
    "__version__",
]

_HOMES = {
    **dict.fromkeys(
        ("Audio", "Blob", "Content", "Embedded", "Image", "Message", "ResourceLink", "Text"),
        "portbook.tools.content",
    ),
    **dict.fromkeys(("Form", "OpenPage", "Roots", "Sample"), "portbook.tools.questions"),
    "CanonicalError": "portbook.errors",
    "Context": "portbook.tools.context",
    "SchemaRegistry": "portbook.tools.registry",
    "ToolError": "portbook.tools.spec",
    "Toolset": "portbook.tools.toolset",
}


def __getattr__(name: str) -> Any:
    # Loaded when first asked for, so that `portbook --version` does not pay for a schema engine.
    if name not in _HOMES:
        raise AttributeError(f"module 'portbook' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
