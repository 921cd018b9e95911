"""HTTP APIs that a function of the test answers for: policy is asked as ever, and nothing is dialled."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import CoroutineType
from typing import Any, Final, TypeAlias, cast

from portbook.canonical import json_bytes
from portbook.executors.coroutines import Coroutines
from portbook.net.destinations import Destination, Destinations
from portbook.net.dns_and_dial import NotPermitted, Unreachable
from portbook.net.http_client import HttpClient, HttpRequest, Sendings
from portbook.net.http_connection import BodySink, Broken, Response, TooLarge
from portbook.net.taskless_waits import TimeLimited
from portbook.testing.call_result import noting

__all__ = ["ApiRequest", "ApiResponse", "FunctionHttpClient", "Upstream", "require_upstream"]


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request that a tool makes to an HTTP API."""

    method: str
    """`GET`, `POST` and the like."""
    url: str
    """The whole address, with its query."""
    headers: dict[str, str]
    """By their names in lower case."""
    body: bytes
    """Empty where there is none."""

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


# The deadline of the call that makes the request is shorter.
_LONG_S: Final = 86_400.0


class _Absent(Enum):
    ABSENT = "absent"


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """What the API answers: a `status`, and `json`, a `body` or neither."""

    status: int = 200
    """The HTTP status."""
    json: Any = _Absent.ABSENT
    """Sent as the body, if there is no `body`; None is sent as `null`."""
    body: bytes | None = None
    """The bytes of the body. Without `json` and `body`, the response has none."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further headers; a response with a body has the content type of JSON unless they name another."""


Upstream: TypeAlias = Callable[[ApiRequest], Any]
"""A function, or a coroutine function, that answers for every HTTP API: with an `ApiResponse`, or with JSON,
which is sent with status 200."""


def require_upstream(upstream: Upstream | None) -> None:
    """Raise `TypeError` for what cannot be called."""
    given: Any = upstream
    if not (given is None or callable(given)):
        raise TypeError(f"upstream= is a function that gets an ApiRequest, not {type(given).__qualname__}")


class FunctionHttpClient(HttpClient):
    """Hands requests to a function, where the real client would dial."""

    def __init__(self, upstream: Upstream | None) -> None:
        super().__init__()
        self._upstream = upstream
        self._tasks = Coroutines()

    async def send(
        self,
        request: HttpRequest,
        destinations: Destinations,
        sendings: Sendings | None = None,
        sink: BodySink | None = None,
        until: float | None = None,
    ) -> Response:
        """Return what the function answers to `request`, whole: no `sink` is used.

        Raises `NotPermitted` where policy does not let it out, `Unreachable` and `Broken` where the function
        raises a `ConnectionError`, `TooLarge`, and `TimeoutError`.
        """
        destination = request.destination
        _require_permitted(destination, destinations)
        asked = ApiRequest(
            request.method,
            f"{destination.scheme}://{destination.authority}{request.target}",
            _headers(request.headers),
            request.body or b"",
        )
        try:
            answering = self._answer_of(asked)
            response = _response(await (answering if until is None else TimeLimited(answering, until)))
        except ConnectionRefusedError:
            raise Unreachable("the connection was refused") from None
        except ConnectionError as error:
            _begin(sendings)
            end = "reset" if isinstance(error, ConnectionResetError) else "closed"
            raise Broken(f"the connection was {end} before an answer arrived", was_heard=False) from None
        except TimeoutError:
            _begin(sendings)
            raise
        except Exception as error:
            _begin(sendings)
            if (noted := noting.get()) is not None:
                noted.mistakes.append(error)
            raise Broken("the function that stands for the API raised an exception") from error
        _begin(sendings)
        if len(response.body) > request.max_response_bytes:
            problem = f"the answer is larger than {request.max_response_bytes} bytes"
            raise TooLarge(problem, response.status)
        return response

    async def probe(self, destination: Destination, destinations: Destinations, **_: Any) -> None:
        """Do nothing where policy lets a request out.

        Raises `NotPermitted` where it does not.
        """
        _require_permitted(destination, destinations)

    async def _answer_of(self, asked: ApiRequest) -> Any:
        """Return what the function answers; it is code of the test's author, with a task of its own."""
        answered: Any = self._tasks.run(self._ask(asked), _LONG_S)
        if isinstance(answered, CoroutineType):
            return await cast("Coroutine[Any, Any, Any]", answered)
        return answered

    async def _ask(self, asked: ApiRequest) -> Any:
        answered = self._answer(asked)
        return await answered if inspect.isawaitable(answered) else answered

    def _answer(self, asked: ApiRequest) -> Any:
        if self._upstream is None:
            where = asked.url.partition("?")[0]
            raise LookupError(f"a tool called {asked.method} {where}; give the client upstream= to answer it")
        return self._upstream(asked)


def _begin(sendings: Sendings | None) -> None:
    if sendings is not None:
        sendings.has_begun = True


def _require_permitted(destination: Destination, destinations: Destinations) -> None:
    if not destinations.permits(destination):
        raise NotPermitted("the destination is not on the allowlist")
    if destination.is_address and not destinations.permits_address(destination, destination.host):
        raise NotPermitted("the address is outside of the public internet and allowed_networks")


def _headers(lines: bytes) -> dict[str, str]:
    pairs = (line.partition(": ") for line in lines.decode("ascii").split("\r\n") if line)
    return {name.lower(): value for name, _, value in pairs}


def _response(answered: Any) -> Response:
    made = answered if isinstance(answered, ApiResponse) else ApiResponse(json=answered)
    headers = {name.lower(): value for name, value in made.headers.items()}
    body = made.body
    if body is None:
        body = b"" if made.json is _Absent.ABSENT else json_bytes(made.json)
    if body:
        headers = {"content-type": "application/json"} | headers
    return Response(made.status, {name.encode(): value.encode() for name, value in headers.items()}, body)
