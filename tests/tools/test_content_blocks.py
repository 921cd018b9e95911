"""Content in every form, as MCP has it."""

from __future__ import annotations

from portbook import Audio, Content, Embedded, Image, ResourceLink
from portbook.tools.content_blocks import blocks_of


def test_every_form_of_content_is_written_as_mcp_has_it() -> None:
    content: list[Content | str] = [
        "a",
        Image(b"\x00", "image/x"),
        Audio(b"\x00"),
        Embedded("a://b", b"\x00", "x/y"),
        ResourceLink("a://b", "b", "x/y", "words"),
    ]
    assert blocks_of(content) == [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "AA==", "mimeType": "image/x"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "a://b", "mimeType": "x/y", "blob": "AA=="}},
        {"type": "resource_link", "uri": "a://b", "name": "b", "mimeType": "x/y", "description": "words"},
    ]
    assert blocks_of(None) == []
