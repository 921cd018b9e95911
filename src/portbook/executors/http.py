"""`HttpExecutor`: runs tools that are operations of an HTTP API behind a gateway.

The caller chooses only the arguments. The operator decides where a request goes, how often it is sent, and
with which credentials and headers. The caller's own token is not available here.

A call of which nothing was sent is refused, whatever the cause, and its approval stays usable. A call of
which a byte may have been sent has failed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from portbook.apis.gateway import Gateway
from portbook.errors import Ending, Failed, Reason, Refused
from portbook.executors.api_credentials import Credentials, NoCredential, SentCredentials
from portbook.executors.cancelled_before_sending import NothingSent
from portbook.executors.http_request_threads_and_uploads import ComposedRequests, RequestForm, proxy_of
from portbook.executors.http_response import (
    answer_beside,
    failure_of_oversize,
    result_of,
    retry_after_s,
    upstream_failed,
)
from portbook.model import JSON, ApiAnswer, JSONObject, Run
from portbook.net.destinations import BadDestination, Destinations, parse_url
from portbook.net.dns_and_dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import (
    MAX_REDIRECTS,
    REDIRECTS,
    HttpClient,
    HttpRequest,
    Sendings,
    target_of_redirect,
)
from portbook.net.http_connection import Broken, Response, TooLarge
from portbook.net.taskless_waits import TimeLimited
from portbook.tools.catalog import Tool
from portbook.tools.http_operation import HttpOperation

__all__ = ["HttpExecutor"]

# Where a server asks for a longer wait, the call fails, and the caller can wait instead.
_MAX_WAIT_S: Final = 2.0
_BACKOFF_S: Final = 0.1


class HttpExecutor:
    """Executes tools that are operations of HTTP APIs."""

    def __init__(
        self,
        gateways: Iterable[Gateway],
        *,
        destinations: Destinations,
        max_attempts: int | None = None,
        environ: Mapping[str, str],
        client: HttpClient | None = None,
        notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Use these gateways within the policy's limits; `notice` is called with every new secret value."""
        self._client = client or HttpClient()
        self._gateways = {gateway.name: gateway for gateway in gateways}
        self._credentials = {
            name: Credentials(gateway, environ, self._client, notice)
            for name, gateway in self._gateways.items()
        }
        self._requests = ComposedRequests(self._gateways)
        self._forms: dict[str, RequestForm] = {}
        self.permit(destinations, max_attempts)

    def permit(self, destinations: Destinations, max_attempts: int | None = None) -> None:
        """Set the policy's limits from now on: the destinations, and the attempts per call."""
        self._destinations = destinations
        self._max_attempts = max_attempts

    def secrets(self) -> list[str]:
        """Return every secret value known so far, for redaction."""
        fixed = [secret for gateway in self._gateways.values() for secret in gateway.secrets]
        return fixed + [secret for read in self._credentials.values() for secret in read.secrets()]

    def problems(self) -> list[str]:
        """Return what is missing of the credentials, as far as it can be known without a request."""
        return [found for credentials in self._credentials.values() for found in credentials.problems()]

    async def execute(self, tool: Tool, arguments: JSONObject, run: Run) -> JSON:
        """Call the operation of `tool` within the deadline of `run` and return its result.

        Raises `Refused` where nothing was sent, `Failed` where a request was sent without a result, and
        `NothingSent` where it is cancelled before a request was sent.
        """
        form, destinations = self._form_of(tool), self._destinations
        if form is None or not (form.permitted_by is destinations or form.is_permitted_by(destinations)):
            raise Refused(Reason.POLICY_VIOLATION, note="its base URL is not on the allowlist")
        retries, answer_ms, given_ms = form.retries, form.operation.answer_ms, run.timeout_ms
        sendings = Sendings(retries if self._max_attempts is None else min(retries, self._max_attempts - 1))
        is_api_late = answer_ms is not None and answer_ms < given_ms
        given_ms = given_ms if answer_ms is None else min(answer_ms, given_ms)
        until = asyncio.get_running_loop().time() + given_ms / 1000
        try:
            composed = self._requests.at_once(form.name, form.operation, arguments)
            credentials = None if composed is None else _read_at_once(form)
            if composed is None or credentials is None:
                calling = self._call(form, arguments, run, sendings, until)
                result, answer = await TimeLimited(calling, until)
            else:
                request = form.filled(composed, credentials, run)
                result, answer = await self._attempts(form, request, sendings, until)
        except TimeoutError:
            happened = _lateness(sendings)
            reason = Reason.UPSTREAM_ERROR if is_api_late else Reason.TIMEOUT
            raise _unanswered(reason, sendings, happened, is_retryable=True) from None
        except asyncio.CancelledError:
            if sendings.has_begun:
                raise
            raise NothingSent from None
        run.heard(answer)
        return result

    async def unreachable(self, timeout_s: float) -> dict[str, str]:
        """Return the gateways that cannot be connected to, by name, with the reason; sends no request."""

        async def probe(gateway: Gateway) -> str | None:
            try:
                destination = parse_url(gateway.base_url).destination
                async with asyncio.timeout(timeout_s):
                    await self._client.probe(
                        destination,
                        self._destinations,
                        proxy=proxy_of(gateway),
                        ca_file=gateway.ca_file,
                    )
            except (BadDestination, NotPermitted, Unreachable, Untrusted) as error:
                return str(error)
            except TimeoutError:
                return "no connection in time"
            return None

        found = await asyncio.gather(*map(probe, self._gateways.values()))
        return {name: why for name, why in zip(self._gateways, found, strict=True) if why is not None}

    async def close(self) -> None:
        """Close every open connection."""
        await self._client.close()

    # -- one request, and its retries

    def _form_of(self, tool: Tool) -> RequestForm | None:
        """Return what all requests of `tool` have; None where its base URL cannot be used."""
        operation, name = tool.spec.operation, tool.spec.name
        assert operation is not None
        form = self._forms.get(name)
        if form is None or form.operation is not operation:
            if operation.destination is None:
                return None
            gateway, credentials = self._gateways[operation.gateway], self._credentials[operation.gateway]
            form = RequestForm(name, operation, operation.destination, gateway, credentials)
            self._forms[name] = form
        return form

    async def _call(
        self, form: RequestForm, arguments: JSONObject, run: Run, sendings: Sendings, until: float
    ) -> tuple[JSON, ApiAnswer]:
        """Call with a request that is large or has files, or a credential that has to be asked for."""
        async with self._requests.of(form.name, form.operation, arguments) as composed:
            request = form.filled(composed, await _read(form), run)
            return await self._attempts(form, request, sendings, until)

    async def _attempts(
        self, form: RequestForm, request: HttpRequest, sendings: Sendings, until: float
    ) -> tuple[JSON, ApiAnswer]:
        """Send a request until there is a result or no `sendings` are left."""
        operation, gives_error_body = form.operation, form.gives_error_bodies
        pause_s = _BACKOFF_S
        failure: Ending | None = None
        while True:
            wait_s: float | None = 0.0
            try:
                response = await self._client.send(request, self._destinations, sendings, until=until)
                if response.status in REDIRECTS and request.method in ("GET", "HEAD"):
                    response = await self._follow(request, response, sendings, until)
            except NotPermitted as error:
                # An earlier failure knows whether a request was sent; this error alone would mean none.
                raise failure or Refused(Reason.POLICY_VIOLATION, note=str(error)) from None
            except (Unreachable, Broken) as error:
                failure = _unanswered(Reason.UPSTREAM_ERROR, sendings, str(error), is_retryable=True)
            except Untrusted as error:
                raise _unanswered(Reason.UPSTREAM_ERROR, sendings, str(error)) from None
            except TooLarge as error:
                too_large = failure_of_oversize(error, gives_body=gives_error_body)
                failure = _with_what_lacks(too_large, operation)
            else:
                try:
                    result = result_of(response, operation, gives_error_body=gives_error_body)
                    return result, answer_beside(response, operation)
                except Failed as found:
                    failure, wait_s = _with_what_lacks(found, operation), retry_after_s(response)
            wait_s = _wait_before_retry(failure, wait_s, pause_s)
            if asyncio.get_running_loop().time() + wait_s >= until or not sendings.take():
                raise failure
            await asyncio.sleep(wait_s)
            pause_s *= 2

    async def _follow(
        self, request: HttpRequest, response: Response, sendings: Sendings, until: float
    ) -> Response:
        """Return the response to `request` after its redirects, which lead to the same destination.

        Raises `Failed` for a redirect to a different destination, and for too many redirects.
        """
        for _ in range(MAX_REDIRECTS):
            target = target_of_redirect(response, request.destination, request.target)
            if target is None:
                raise upstream_failed(
                    "it redirects to a different destination, which is not followed", response.status
                )
            request = request._replace(target=target)
            try:
                response = await self._client.send(request, self._destinations, sendings, until=until)
            except NotPermitted:
                raise upstream_failed("it redirects, and its address is no longer permitted") from None
            if response.status not in REDIRECTS:
                return response
        raise upstream_failed("it redirects too often", response.status)


def _read_at_once(form: RequestForm) -> SentCredentials | None:
    """Return the credentials of a request; None where one may have to be asked for.

    Raises `Refused` where one is not available.
    """
    try:
        return form.credentials.at_once(form.operation.credentials)
    except NoCredential as error:
        raise _without_credential(error) from None


async def _read(form: RequestForm) -> SentCredentials:
    """Return the credentials of a request.

    Raises `Refused` where one is not available.
    """
    try:
        return await form.credentials.read(form.operation.credentials)
    except NoCredential as error:
        raise _without_credential(error) from None


def _without_credential(error: NoCredential) -> Refused:
    # The names of settings and variables are for the record alone.
    happened = "its credential is not available"
    return Refused(Reason.UPSTREAM_ERROR, note=str(error), happened=happened)


def _unanswered(
    reason: Reason, sendings: Sendings, happened: str, *, is_retryable: bool | None = None
) -> Ending:
    """Return the ending of a call without a response: `Refused` only if nothing of it was sent."""
    kind = Failed if sendings.has_begun else Refused
    return kind(reason, happened=happened, is_retryable=is_retryable)


def _wait_before_retry(failure: Ending, asked_s: float | None, pause_s: float) -> float:
    """Return how long to wait before the next attempt: as long as the server asks, or a part of `pause_s`.

    Raises the failure where there is no next attempt.
    """
    if not failure.is_retryable or asked_s is None or asked_s > _MAX_WAIT_S:
        raise failure
    # With jitter, so that many callers of a failing server do not all retry at once.
    return max(asked_s, pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it


def _with_what_lacks(failure: Failed, operation: HttpOperation) -> Failed:
    """Return the failure; where the API denied the call, the record has the credentials that it lacked."""
    if failure.reason is Reason.UPSTREAM_DENIED and operation.lacks:
        place = f"http.{operation.gateway}.credentials"
        failure.note = f"{failure.happened}; {place} has nothing for {operation.lacks}"
    return failure


def _lateness(sendings: Sendings) -> str:
    """Return how far a call came whose time is up."""
    if sendings.is_half_answered:
        return "an answer began, and did not end in time"
    return f"no {'answer arrived' if sendings.has_begun else 'connection was made'} in time"
