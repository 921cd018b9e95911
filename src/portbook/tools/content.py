"""What tools and prompts can return beside plain values: pictures, sounds, resources, and messages of them.

    @toolset.tool(effect="read")
    def chart(month: str) -> Image: ...

    @toolset.tool(effect="read")
    def report(month: str) -> list[Content]:
        return [Text("Sales went up."), Image(png), ResourceLink("notes://sales", "sales")]

Pure: no I/O.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import InitVar, dataclass
from typing import Any, Final, Literal, cast

from portbook.model import JSON, JSONObject

__all__ = [
    "Audio",
    "Blob",
    "Content",
    "Embedded",
    "Image",
    "Message",
    "ResourceLink",
    "Text",
    "blocks_of",
    "contents_of",
    "messages_of",
]


# What files end in, where their media type is called otherwise.
_SUBTYPES: Final = {"jpg": "jpeg", "svg": "svg+xml", "mp3": "mpeg", "m4a": "mp4"}


class Content:
    """A piece of content, as MCP has it: what a tool returns beside plain values. It is one of those below.

    A tool says so in its return type: `-> Image`, or `-> list[Content]`, in which bare text is content too.
    """

    __slots__ = ()

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Text(Content):
    """Words."""

    text: str

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
        return {"type": "text", "text": self.text}


@dataclass(frozen=True, slots=True)
class Image(Content):
    """A picture: its bytes as they are, and their `mime_type`."""

    data: bytes
    mime_type: str = "image/png"
    format: InitVar[str | None] = None
    """Another way to say the type: `"png"` means `"image/png"`."""

    def __post_init__(self, format: str | None) -> None:  # noqa: A002 - what the field is called
        """Take the type from `format`, where that is given."""
        if format is not None:
            object.__setattr__(self, "mime_type", _media_type("image", format))

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
        return {"type": "image", "data": _encoded(self.data), "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Audio(Content):
    """A sound: its bytes as they are, and their `mime_type`."""

    data: bytes
    mime_type: str = "audio/wav"
    format: InitVar[str | None] = None
    """Another way to say the type: `"wav"` means `"audio/wav"`."""

    def __post_init__(self, format: str | None) -> None:  # noqa: A002 - what the field is called
        """Take the type from `format`, where that is given."""
        if format is not None:
            object.__setattr__(self, "mime_type", _media_type("audio", format))

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
        return {"type": "audio", "data": _encoded(self.data), "mimeType": self.mime_type}


@dataclass(frozen=True, slots=True)
class Embedded(Content):
    """A resource, with what is in it: text, or bytes as they are."""

    uri: str
    data: str | bytes
    mime_type: str | None = None

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
        return {"type": "resource", "resource": {"uri": self.uri, **_held(self.data, self.mime_type)}}


@dataclass(frozen=True, slots=True)
class ResourceLink(Content):
    """A resource, without what is in it: the caller reads it if it wants to."""

    uri: str
    name: str
    mime_type: str | None = None
    description: str | None = None

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
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
        """Return it as it goes out."""
        content = Text(self.content) if isinstance(self.content, str) else self.content
        return {"role": self.role, "content": content.as_json()}


@dataclass(frozen=True, slots=True)
class Blob:
    """One part of a resource, where it has several, or a type of its own."""

    data: str | bytes
    mime_type: str | None = None
    uri: str | None = None
    """Where it lies, if not at the address that was asked for."""

    def as_json(self) -> JSONObject:
        """Return it as it goes out."""
        own: JSONObject = {} if self.uri is None else {"uri": self.uri}
        return {**own, **_held(self.data, self.mime_type)}


def blocks_of(value: Any) -> list[JSONObject]:
    """Return what a tool returned as content.

    Raises `TypeError` for what is neither content nor text.
    """
    return [_block(item) for item in _items(value)]


def messages_of(value: Any) -> list[JSONObject]:
    """Return what a prompt returned as messages; bare text and content are the user's.

    Raises `TypeError` for what is neither.
    """
    return [
        item.as_json()
        if isinstance(item, Message)
        else {"role": "user", "content": cast("JSON", _block(item))}
        for item in _items(value)
    ]


def contents_of(value: Any) -> list[JSONObject]:
    """Return what a resource returned as its parts; text and bytes are one.

    Raises `TypeError` for anything else.
    """
    parts: list[JSONObject] = []
    for item in _items(value):
        if isinstance(item, Blob):
            parts.append(item.as_json())
        elif isinstance(item, str | bytes):
            parts.append(_held(item, None))
        else:
            raise TypeError("a resource returns text, bytes, Blob, or a list of them")
    return parts


def _items(value: Any) -> Iterable[Any]:
    if value is None:
        return ()
    return cast("Iterable[Any]", value) if isinstance(value, list | tuple) else (value,)


def _block(item: Any) -> JSONObject:
    if isinstance(item, str):
        return Text(item).as_json()
    if isinstance(item, Content):
        return item.as_json()
    raise TypeError("content is text, Image, Audio, Embedded, ResourceLink, or a list of them")


def _media_type(kind: str, ending: str) -> str:
    name = ending.lower().lstrip(".")
    return f"{kind}/{_SUBTYPES.get(name, name)}"


def _held(data: str | bytes, mime_type: str | None) -> JSONObject:
    held: JSONObject = {"text": data} if isinstance(data, str) else {"blob": _encoded(data)}
    return held if mime_type is None else {"mimeType": mime_type, **held}


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
