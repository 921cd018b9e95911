"""`HttpOperation`: the HTTP request that a tool makes, and where each argument goes in it. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Literal, TypeAlias

from portbook.model import JSON, JSONObject
from portbook.net.destinations import BadDestination, Destination, parse_url
from portbook.tools.http_methods import BODY_METHODS
from portbook.tools.media_types import JSON_TYPE, MediaKind, is_in_range, is_json, kind_of

__all__ = [
    "BodyPart",
    "CredentialForm",
    "CredentialPlace",
    "CredentialUse",
    "HttpOperation",
    "Parameter",
    "ParameterPlace",
    "Style",
    "is_token",
    "problem_of_base_url",
    "problem_of_path",
    "split_path",
]


# `CredentialUse`: where an operation sends one of its gateway's credentials.

CredentialPlace: TypeAlias = Literal["header", "query", "cookie"]
# How the secret is written there: as it is, after `Bearer`, or with a user's name after `Basic`.
CredentialForm: TypeAlias = Literal["plain", "bearer", "basic"]


@dataclass(frozen=True, slots=True)
class CredentialUse:
    """One credential in the requests of an operation."""

    credential: str
    """Its name in the settings, which is that of its security scheme."""
    place: CredentialPlace
    name: str
    """The name of the header, the query parameter or the cookie."""
    form: CredentialForm = "plain"


_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_BRACED: Final = re.compile(r"\{([^{}]+)\}")
_PATH: Final = re.compile(r"/[!-\"$-~]*")  # printable ASCII, without a fragment
# A dot segment, also where its dots or the slashes around it are percent-encoded.
_DOTS: Final = re.compile(r"(?i)(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?=[/\\;]|%2f|%5c|%3b|$)")


class ParameterPlace(StrEnum):
    """Where an argument goes in the request."""

    PATH = "path"
    QUERY = "query"
    HEADER = "header"
    COOKIE = "cookie"
    BODY = "body"


class Style(StrEnum):
    """How a list or an object is serialized outside of a body: OpenAPI's `style` and `explode` in one."""

    REPEAT = "repeat"
    """A list repeats the name, an object is JSON."""
    COMMA = "comma"
    PAIRS = "pairs"
    """As with commas, but an object is `member=value,member=value`."""
    LABEL = "label"
    """In a path: `.a,b`."""
    LABEL_EXPLODED = "label_exploded"
    """In a path: `.a.b`, and `.member=value` for an object."""
    MATRIX = "matrix"
    """In a path: `;name=a,b`."""
    MATRIX_EXPLODED = "matrix_exploded"
    """In a path: `;name=a;name=b`, and `;member=value` for an object."""
    SPACE = "space"
    PIPE = "pipe"
    SPREAD = "spread"
    """An object's members are written under their own names; a list repeats the name."""
    DEEP = "deep"
    """Members are written as `name[member]`, items as `name[0]`, at any depth."""
    JSON = "json"
    """Every value is JSON, strings too."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument and its place in the request."""

    argument: str
    """Its name among the tool's arguments."""
    place: ParameterPlace
    name: str
    """Its name in the request."""
    style: Style = Style.REPEAT
    allows_reserved: bool = False
    """Whether its value in a query keeps those reserved characters that cannot end it."""

    def as_data(self) -> list[JSON]:
        """Return the parameter as JSON, for the tool's digest."""
        known: list[JSON] = [self.argument, self.place.value, self.name, self.style.value]
        return [*known, "reserved"] if self.allows_reserved else known


@dataclass(frozen=True, slots=True)
class BodyPart:
    """How one field of a form is written."""

    name: str
    style: Style = Style.REPEAT
    content_type: str | None = None
    """In a multipart body; None lets the value decide."""
    is_binary: bool = False
    """Whether it is a file, or a list of files."""
    allows_reserved: bool = False

    def as_data(self) -> list[JSON]:
        """Return the part as JSON, for the tool's digest."""
        return [self.name, self.style.value, self.content_type, self.is_binary, self.allows_reserved]


@dataclass(frozen=True, slots=True)
class HttpOperation:
    """One operation of an API behind a gateway."""

    gateway: str
    """The name of the gateway in the settings: `orders` in `[http.orders]`."""
    base_url: str
    method: str
    """The HTTP method, in capitals."""
    path: str
    """A template such as `/orders/{id}`, joined to the base URL's own path."""
    parameters: tuple[Parameter, ...] = ()
    """Arguments with an explicit place. An argument that the path template names goes into the path; the
    remaining arguments go into the query or the body."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of every request, whatever the arguments."""
    body: str | None = None
    """The argument that is the whole body, if there is one."""
    has_body: bool | None = None
    """Whether the remaining arguments go into the body; None lets the method decide."""
    parts: tuple[BodyPart, ...] = ()
    """The fields of a body that is a form, as far as they are known."""
    body_members: frozenset[str] = frozenset()
    """The members of a JSON body that the tool's input schema describes, where the query has fixed names."""
    credentials: tuple[CredentialUse, ...] = ()
    """The credentials of the gateway that this operation alone requires, beside those of every request."""
    lacks: str = ""
    """The security schemes for which the operator has no credential, in words; empty where there are none."""
    is_idempotent: bool = False
    """Whether sending it twice has the same effect as sending it once."""
    retries: int | None = None
    """How often to retry, where it is idempotent and policy allows; None means the gateway's number."""
    max_response_bytes: int | None = None
    """The largest response that is read; None means the gateway's number."""
    request: str = "application/json"
    """The content type of the body."""
    response: str = "application/json"
    """The content type that is wanted of a response, or a range such as `image/*`. Its kind decides whether a
    result is content, or a value."""
    other_responses: tuple[str, ...] = ()
    """Further content types and ranges that a response may have."""
    is_proposed: bool = False
    """Whether the base URL is that of an OpenAPI document, not the operator's own."""
    is_elsewhere: bool = False
    """Whether the document names this base URL for some operations only: not every host that a document can
    name may get the operator's credentials."""
    is_listed: bool = False
    """Whether the base URL counts as listed in every policy, wherever its host lies: the operator set it for
    this one purpose."""
    answer_ms: int | None = None
    """How long the API has for its answer, all steps together, where its contract says so. Then the API has
    failed; the tool's own deadline may end the call earlier."""
    write: Callable[[JSONObject], bytes] | None = field(default=None, compare=False)
    """Returns the body for arguments, or raises `Refused` where they cannot be sent; None where the arguments
    are the body."""
    read: Callable[[int, bytes], JSON] | None = field(default=None, compare=False)
    """Returns the result for the status and the body of a response, or raises `Failed`; None where the body
    of a 2xx is the result."""
    destination: Destination | None = field(init=False)
    """The destination of the base URL; None where it cannot be parsed, and then no call is allowed."""
    accept: str = field(init=False)
    """The value of the Accept header."""
    takes_json: bool = field(init=False)
    """Whether JSON is among what a response may have."""

    def __post_init__(self) -> None:
        # Parsed once, because every decision on every call needs it.
        usable = problem_of_base_url(self.base_url) is None
        object.__setattr__(self, "destination", parse_url(self.base_url).destination if usable else None)
        others = [f"{media};q=0.5" for media in self.other_responses]
        object.__setattr__(self, "accept", ", ".join([self.response, *others]))
        takes_json = not self.gives_content and self.accepts(JSON_TYPE)
        object.__setattr__(self, "takes_json", takes_json)

    @property
    def endpoint(self) -> str:
        """Return the URL for records, with the path as a template, not with its values.

        An unusable base URL is left out, because it may contain a password.
        """
        return self.path if self.destination is None else self.base_url.rstrip("/") + self.path

    @property
    def domain(self) -> str | None:
        """Return host and port in the form of an allowlist entry."""
        return None if self.destination is None else f"{self.destination.host}:{self.destination.port}"

    def as_data(self) -> JSONObject:
        """Return the operation as JSON, for the tool's digest."""
        return {
            "gateway": self.gateway,
            "base_url": self.base_url,
            "method": self.method,
            "path": self.path,
            "parameters": [parameter.as_data() for parameter in self.parameters],
            "body": self.body,
            "has_body": self.has_body,
            "request": self.request,
            "response": self.response,
            **({"headers": [list(header) for header in self.headers]} if self.headers else {}),
            **({"other_responses": list(self.other_responses)} if self.other_responses else {}),
            **({"parts": [part.as_data() for part in self.parts]} if self.parts else {}),
        }

    @property
    def gives_content(self) -> bool:
        """Return whether results are content: binary data, which no JSON value holds."""
        return kind_of(self.response) in (MediaKind.BINARY, MediaKind.MULTIPART)

    def accepts(self, media: str) -> bool:
        """Return whether a response may have this media type; one JSON type is as good as another."""
        if media == self.response:
            return True
        types = (self.response, *self.other_responses)
        return any(is_in_range(media, each) for each in types) or (is_json(self.response) and is_json(media))

    @property
    def sends_body(self) -> bool:
        """Return whether the remaining arguments go into the body."""
        return self.method in BODY_METHODS if self.has_body is None else self.has_body


def problem_of_base_url(url: str) -> str | None:
    """Return why `url` cannot be a base URL, or None where it can."""
    try:
        parsed = parse_url(url)
    except BadDestination as error:
        return str(error)
    if parsed.query or "?" in url or "#" in url:
        return "a base URL ends with its path, without a query or a fragment"
    return None


def problem_of_path(path: str) -> str | None:
    """Return the rule that a path template breaks, or None where it is valid."""
    literals, names = split_path(path)
    if not _PATH.fullmatch(path) or any("{" in literal or "}" in literal for literal in literals):
        return "must start with / and be printable ASCII, with names in braces: /orders/{id}"
    before, _, query = path.partition("?")
    if len(set(names)) < len(names) or "{" in query:
        return "must name each argument once, and none after a question mark"
    if _DOTS.search(before):
        return "must have no dot segments"
    return None


def is_token(text: str) -> bool:
    """Return whether `text` can be the name of a header or a cookie (RFC 9110, 5.6.2)."""
    return _TOKEN.fullmatch(text) is not None


def split_path(path: str) -> tuple[list[str], list[str]]:
    """Return the literal parts of a path such as `/orders/{id}`, and its names: one fewer than the parts."""
    parts = _BRACED.split(path)
    return parts[::2], parts[1::2]
