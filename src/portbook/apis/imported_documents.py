"""Reads the OpenAPI documents of a gateway: what is wanted, at which server, with which credentials."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from portbook.apis.fetched_documents import DocumentSource, read_sources
from portbook.apis.gateway import Gateway, is_argument_header, sends_cookies
from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.apis.openapi.document_files import BadOpenAPI, Documents
from portbook.apis.openapi.operations_and_names import (
    ImportedNames,
    ImportedOperation,
    OperationHead,
    operation_names,
    read_openapi,
)
from portbook.apis.openapi.parameters_and_path_keys import ArgumentRules
from portbook.apis.openapi.security_schemes_and_credentials import (
    ChosenCredentials,
    CredentialChooser,
    SecurityScheme,
    read_schemes,
    require_known_schemes,
)
from portbook.apis.openapi.servers import Server, ServerChooser, ServerVariables, without_server
from portbook.apis.selected_operations import ImportSelection
from portbook.apis.table_reader import Table
from portbook.net.destinations import parse_destination
from portbook.tools.tool_names import MAX_NAME

__all__ = ["DOCUMENT_KEYS", "SELECTION_KEYS", "ImportedDocuments", "PlacedOperation", "read_documents"]

SELECTION_KEYS: Final = ("deprecated", "effects", "exclude", "include", "tags")
DOCUMENT_KEYS: Final = ("listed_outputs", "openapi", "server_variables", *SELECTION_KEYS)

# What a gateway's name must leave to the names of imported tools.
_SHORTEST_ROOM: Final = 32


@dataclass(frozen=True, slots=True)
class PlacedOperation:
    """An operation, where it is called, and with which credentials of its own."""

    operation: ImportedOperation
    server: Server
    credentials: ChosenCredentials
    is_elsewhere: bool = False
    """Whether its server is not that of the document, which the gateway's credentials are meant for."""


@dataclass(frozen=True, slots=True)
class ImportedDocuments:
    """What is wanted of a gateway's documents."""

    selection: ImportSelection
    server: Server
    """The gateway's: the operator's own, or else the first of the documents."""
    names: tuple[str, ...] = ()
    """The documents, as the settings name them."""
    operations: tuple[PlacedOperation, ...] = ()
    left_out: tuple[LeftOutOperation, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Return how many operations are wanted."""
        return len(self.operations) + len(self.left_out)


def read_documents(table: Table, gateway: Gateway, base_url: str | None, folder: Path) -> ImportedDocuments:
    """Return what is wanted of the documents of a gateway; files are relative to `folder`.

    Without the operator's `base_url`, operations are called at the servers of their documents.

    Raises the table's exception where a setting is not valid, or a document cannot be read.
    """
    own = None if base_url is None else Server(base_url)
    sources = read_sources(table, gateway.name, folder)
    if not sources:
        assert own is not None
        _refuse_document_keys(table)
        return ImportedDocuments(ImportSelection(), own)
    reader = _Reader(table, gateway, own, sources)
    try:
        reader.read()
    except BadOpenAPI as error:
        raise table.wrong("openapi", f"cannot be imported: {error}") from None
    return reader.finished()


class _Reader:
    """Reads the documents of one gateway, one after the other."""

    def __init__(
        self, table: Table, gateway: Gateway, own: Server | None, sources: Sequence[DocumentSource]
    ) -> None:
        self._table = table
        self._sources = sources
        self._names = tuple(source.name for source in sources)
        self._gateway = gateway
        self._own = own
        self._selection = ImportSelection.read(table)
        self._variables = ServerVariables(_given_variables(table))
        self._heads: list[OperationHead] = []
        self._schemes: list[Mapping[str, SecurityScheme]] = []
        self._choosers: list[CredentialChooser] = []
        self._servers: list[Server] = []
        self._operations: list[PlacedOperation] = []
        self._left_out: list[LeftOutOperation] = []
        self._unchecked: list[str] = []
        self._server_choosers: list[ServerChooser] = []

    def read(self) -> None:
        """Read the documents.

        Raises `BadOpenAPI` where one cannot be read.
        """
        documents = [Documents(source.path, source.problem_of) for source in self._sources]
        longest, shared = _longest_name(self._table), _shared_names(documents)
        for each, source in zip(documents, self._sources, strict=True):
            self._read_one(each, source, ImportedNames(longest, shared, source.name))

    def finished(self) -> ImportedDocuments:
        """Return what was read, after the checks that need all documents.

        Raises the table's exception for settings that fit none of them.
        """
        table = self._table
        warnings = [*self._unchecked, *self._selection.doubts(table, self._heads)]
        if "credentials" in table:
            require_known_schemes(table.table("credentials"), self._gateway, self._schemes)
        if "server_variables" in table:
            self._variables.require_known(table.table("server_variables"))
        total = len(self._operations) + len(self._left_out)
        for chooser in self._choosers:
            warnings.extend(chooser.doubts(table, total))
        if not total:
            written = [key for key in SELECTION_KEYS if key in table and key != "effects"]
            hint = f"check {', '.join(written)}" if written else "the document has none"
            warnings.append(str(table.wrong("openapi", f"gives no tool; {hint}")))
        server = self._own or next(iter(self._servers), None)
        if server is None:
            raise without_server(table, self._server_choosers)
        return ImportedDocuments(
            self._selection,
            server,
            self._names,
            tuple(self._operations),
            tuple(self._left_out),
            tuple(warnings),
        )

    def _read_one(self, documents: Documents, source: DocumentSource, names: ImportedNames) -> None:
        root, url = documents.root(), None if source.locked is None else source.locked.url
        schemes = read_schemes(documents, root)
        chooser = CredentialChooser(self._gateway, schemes)
        servers = ServerChooser(root, self._variables, url)
        self._server_choosers.append(servers)
        self._schemes.append(schemes)
        self._choosers.append(chooser)
        self._servers.extend(filter(None, (servers.choose(),)))
        rules = ArgumentRules(
            lambda header: is_argument_header(header, self._gateway),
            takes_cookies=not sends_cookies(self._gateway),
            takes_paths=self._gateway.files is not None,
            credentials=chooser.taken(),
        )
        for operation in read_openapi(
            documents, self._is_wanted, rules, names, servers, self._unchecked.append
        ):
            self._place(operation, chooser, servers)

    def _is_wanted(self, head: OperationHead) -> bool:
        self._heads.append(head)
        return self._selection.wants(head)

    def _place(
        self,
        operation: ImportedOperation | LeftOutOperation,
        chooser: CredentialChooser,
        servers: ServerChooser,
    ) -> None:
        if isinstance(operation, LeftOutOperation):
            self._left_out.append(operation)
            return
        server = self._own or operation.server
        if server is None:
            self._left_out.append(operation.left_out(Cause.SERVER, servers.why_none()))
            return
        self._servers.append(server)
        chosen, documents_server = chooser.choose(operation.requirement), servers.choose()
        is_elsewhere = (
            server.is_proposed
            and documents_server is not None
            and parse_destination(server.base_url) != parse_destination(documents_server.base_url)
        )
        self._operations.append(PlacedOperation(operation, server, chosen, is_elsewhere))


def _shared_names(documents: Sequence[Documents]) -> frozenset[str]:
    """Return the names of operations that several documents have."""
    if len(documents) == 1:
        return frozenset()
    counts = Counter(name for each in documents for name in set(operation_names(each)))
    return frozenset(name for name, count in counts.items() if count > 1)


def _refuse_document_keys(table: Table) -> None:
    for key in (*DOCUMENT_KEYS, "credentials"):
        if key in table:
            raise table.wrong(key, "applies to imported tools; set openapi to a document")


def _given_variables(table: Table) -> dict[str, str]:
    if "server_variables" not in table:
        return {}
    given = table.table("server_variables")
    return {name: given.text(name) or "" for name in given}


def _longest_name(table: Table) -> int:
    """Return how long the name of an operation may be, beside the gateway's.

    Raises the table's exception where hardly anything is left.
    """
    longest = MAX_NAME - len(f"{table.path[-1]}.")
    if longest < _SHORTEST_ROOM:
        raise table.wrong(
            None, f"is too long a name for a gateway with a document; cut it by {_SHORTEST_ROOM}"
        )
    return longest
