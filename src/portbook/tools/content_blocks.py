"""Content that tools and prompts can return beside plain values: text, resources, messages.

    @toolset.tool(effect="read")
    def chart(month: str) -> Image: ...

    @toolset.tool(effect="read")
    def report(month: str) -> list[Content]:
        return [Text("Sales went up."), Image(png), ResourceLink("notes://sales", "sales")]

Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, cast

from portbook.model import JSONObject
from portbook.tools.content_class import Content, base64_text

__all__ = [
    "Blob",
    "Content",
    "Embedded",
    "Message",
    "ResourceLink",
    "Text",
    "block_of",
    "blocks_of",
    "items_of",
]


@dataclass(frozen=True, slots=True)
class Text(Content):
    """Text."""

    text: str

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Embedded(Content):
    """A resource with its data: text, or raw bytes."""

    uri: str
    data: str | bytes
    mime_type: str | None = None

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        return {"type": "resource", "resource": {"uri": self.uri, **_held(self.data, self.mime_type)}}


@dataclass(frozen=True, slots=True)
class ResourceLink(Content):
    """A link to a resource, without its data; the caller may read it."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        link: JSONObject = {"type": "resource_link", "uri": self.uri, "name": self.name}
        if self.mime_type is not None:
            link["mimeType"] = self.mime_type
        if self.description is not None:
            link["description"] = self.description
        return link


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    content: Content | str
    role: Literal["user", "assistant"] = "user"

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        content = Text(self.content) if isinstance(self.content, str) else self.content
        return {"role": self.role, "content": content.as_json()}


@dataclass(frozen=True, slots=True)
class Blob:
    """One part of a resource that has several parts, or a part with its own media type."""

    data: str | bytes
    mime_type: str | None = None
    uri: str | None = None
    """The URI of this part, where it differs from the requested one."""

    def as_json(self) -> JSONObject:
        """Return the MCP form."""
        own: JSONObject = {} if self.uri is None else {"uri": self.uri}
        return {**own, **_held(self.data, self.mime_type)}


def blocks_of(value: Any) -> list[JSONObject]:
    """Return a tool's result as MCP content blocks.

    Raises `TypeError` where an item is neither content nor text.
    """
    return [block_of(item) for item in items_of(value)]


def items_of(value: Any) -> Iterable[Any]:
    """Return the items of a list or a tuple; any other value is one item, and None is none."""
    if value is None:
        return ()
    return cast("Iterable[Any]", value) if isinstance(value, list | tuple) else (value,)


def block_of(item: Any) -> JSONObject:
    """Return content or text as an MCP content block.

    Raises `TypeError` where it is neither.
    """
    if isinstance(item, str):
        return Text(item).as_json()
    if isinstance(item, Content):
        return item.as_json()
    raise TypeError("content is text, Image, Audio, Embedded, ResourceLink, or a list of them")


def _held(data: str | bytes, mime_type: str | None) -> JSONObject:
    held: JSONObject = {"text": data} if isinstance(data, str) else {"blob": base64_text(data)}
    return held if mime_type is None else {"mimeType": mime_type, **held}
