"""The server of each operation of an OpenAPI document, with its variables filled in. Pure: no I/O.

A document often comes from a third party, so that its servers are proposals: `base_url` in the settings wins,
and policy decides on each call whether the destination may be called. Where the operator has no allowlist,
that is a public host with https.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urljoin

from portbook.apis.openapi.document_files import DocumentNode
from portbook.apis.table_reader import Table
from portbook.escaping import escaped
from portbook.net.destinations import parse_destination
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.http_operation import HttpOperation, problem_of_base_url

__all__ = ["Server", "ServerChooser", "ServerVariables", "is_callable_by_default", "without_server"]

_VARIABLE: Final = re.compile(r"\{([^{}]+)\}")
_MAX_LISTED: Final = 200


class _Unusable(Exception):
    """A server that cannot be called; the message says why."""


class Server(NamedTuple):
    """Where operations are called."""

    base_url: str
    is_proposed: bool = False
    """Whether a document proposes it. The operator's own are `base_url` and the host a document is from."""


class ServerVariables:
    """The values of variables in the servers of a gateway's documents."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        """Use the operator's values where they are `given`."""
        self._given = given or {}
        self._known: dict[str, tuple[str, ...]] = {}

    def value(self, name: str, variable: DocumentNode) -> str | None:
        """Return the value of a variable: the operator's, the default, or the first that is allowed."""
        allowed = tuple(filter(None, (_text(item) for item in variable.at("enum").items)))
        self._known[name] = (*self._known.get(name, ()), *allowed)
        if name in self._given:
            return self._given[name]
        default = _text(variable.at("default"))
        return next(iter(allowed), None) if default is None else default

    def require_known(self, table: Table) -> None:
        """Check that the documents have each of the operator's variables, and allow its value.

        Raises the exception of `table`, which has the variables, otherwise.
        """
        for name, value in self._given.items():
            if name not in self._known:
                listed = f"it has {', '.join(sorted(self._known))}" if self._known else "it has none"
                hint = did_you_mean(name, sorted(self._known), escaped(listed, _MAX_LISTED))
                raise table.wrong(name, f"is not a variable of the document's servers; {hint}")
            allowed = self._known[name]
            if allowed and value not in allowed:
                hint = did_you_mean(value, allowed, escaped(f"use {', '.join(allowed)}", _MAX_LISTED))
                raise table.wrong(name, f"has a value that the document does not list; {hint}")


class ServerChooser:
    """Chooses the servers of one document's operations."""

    def __init__(
        self, root: DocumentNode, variables: ServerVariables | None = None, document_url: str | None = None
    ) -> None:
        """Fill in `variables`; relative servers are relative to `document_url`, if that is known."""
        self._root = root
        self._variables = variables or ServerVariables()
        self._document_url = document_url
        self._origin = None if document_url is None else parse_destination(document_url)
        self._chosen: dict[tuple[str, str], Server | None] = {}
        self.problems: list[str] = []
        """Why servers of the document cannot be used so far, with their places."""

    def choose(
        self, item: DocumentNode | None = None, operation: DocumentNode | None = None
    ) -> Server | None:
        """Return the server of an operation, or None where the document has none that can be used.

        1. The operation's servers, if it has any; otherwise those of its path; otherwise the document's.
        2. Of these the first with https; otherwise the first.
        """
        for node in (operation, item, self._root):
            servers = None if node is None else node.at("servers")
            if servers is not None and servers.items:
                key = (servers.file, servers.pointer)
                if key not in self._chosen:
                    self._chosen[key] = self._best(self._urls(servers))
                return self._chosen[key]
        default = self._absolute("/")  # OpenAPI's default: where the document is from
        return self._best([default] if problem_of_base_url(default) is None else [])

    def why_none(self) -> str:
        """Return why an operation has no server, after `choose` found none for it."""
        problem = f" ({self.problems[-1]})" if self.problems else ""
        return f"the document names no server that can be called for it{problem}; set base_url"

    def _best(self, urls: Sequence[str]) -> Server | None:
        if not urls:
            return None
        url = next((url for url in urls if url.lower().startswith("https:")), urls[0])
        return Server(url, parse_destination(url) != self._origin)

    def _urls(self, servers: DocumentNode) -> list[str]:
        """Return the addresses of servers; why one cannot be used is kept among the problems."""
        found: list[str] = []
        for server in servers.items:
            try:
                found.append(self._url(server))
            except _Unusable as why:
                self.problems.append(str(server.at("url").bad(str(why))))
        return found

    def _url(self, server: DocumentNode) -> str:
        template = server.text("url")
        if template is None:
            raise _Unusable("a server needs a url")
        url = self._absolute(self._filled(template, server.at("variables")))
        problem = problem_of_base_url(url)
        if problem is not None and self._document_url is None and template.startswith("/"):
            problem = "it is relative, and this document was not fetched from an address"
        if problem is not None:
            raise _Unusable(problem)
        return url

    def _filled(self, template: str, variables: DocumentNode) -> str:
        """Return a URL with its variables filled in."""
        values: dict[str, str] = {}
        for name in _VARIABLE.findall(template):
            value = self._variables.value(name, variables.at(name))
            if value is None:
                raise _Unusable(f"its variable {escaped(name)} has no value; set it in server_variables")
            values[name] = value
        return _VARIABLE.sub(lambda found: values[found[1]], template)

    def _absolute(self, url: str) -> str:
        """Return a URL as seen from the document's own, without a slash at its end."""
        if self._document_url is not None:
            with suppress(ValueError):  # such as https://[, which is told as no URL then
                url = urljoin(self._document_url, url)
        return url.rstrip("/")


def is_callable_by_default(operation: HttpOperation) -> bool:
    """Return whether an operation may be called at a document's server, where there is no allowlist.

    The server may not lead into the operator's network, nor carry credentials in the clear; a server of
    single operations may not be called at all.
    """
    if operation.destination is None:
        return True
    if operation.is_elsewhere:
        return False
    return operation.destination.scheme == "https" and operation.destination.is_public_name


def without_server(table: Table, choosers: Iterable[ServerChooser]) -> Exception:
    """Return the exception of a gateway's `table` whose documents have no server that can be called."""
    problem = next((each.problems[0] for each in choosers if each.problems), None)
    why = "names no server" if problem is None else f"names none that can be called: {problem}"
    return table.wrong("base_url", f"is not given, and the document {why}; set base_url to the API's address")


def _text(node: DocumentNode) -> str | None:
    """Return a value as text; many documents write ports as numbers."""
    value = node.value
    is_text = isinstance(value, str) or type(value) is int
    return str(value) if is_text else None
