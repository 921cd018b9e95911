"""Reads the OpenAPI documents of a gateway: what is wanted, at which server, with which credentials.

`ImportSelection` has which operations become tools.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, cast

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
from portbook.apis.table_reader import Table
from portbook.globs import is_pattern, matches
from portbook.net.destinations import parse_destination
from portbook.text.did_you_mean import did_you_mean
from portbook.tools.spec import Effect
from portbook.tools.tool_names import MAX_NAME

__all__ = [
    "DOCUMENT_KEYS",
    "SELECTION_KEYS",
    "ImportSelection",
    "ImportedDocuments",
    "PlacedOperation",
    "missing_operation",
    "read_documents",
]

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


# `ImportSelection`: which operations of a gateway's documents become tools.
#
# `include`, `exclude` and `effects` have patterns of names, or of methods and paths: one with a space, such
# as `GET /orders/*`, is of these. `tags` has patterns of tags. A pattern that matches nothing is a likely
# mistake, and is told with its line.

_DEPRECATED: Final = ("serve", "leave-out")


@dataclass(frozen=True, slots=True)
class ImportSelection:
    """What the operator chose of the documents of one gateway."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    tags: tuple[str, ...] | None = None
    """None where an operation is wanted whatever its tags."""
    deprecated: Literal["serve", "leave-out"] = "serve"
    effects: dict[str, Effect] = field(default_factory=dict[str, Effect])
    """The effects of tools by patterns of their names; the first that matches counts."""
    is_given: bool = False
    """Whether the operator chose at all."""

    @classmethod
    def read(cls, table: Table) -> ImportSelection:
        """Return the selection of a gateway's table.

        Raises the table's exception where a value is not valid.
        """
        deprecated = table.choice("deprecated", _DEPRECATED) or "serve"
        return cls(
            table.texts("include") or ("*",),
            table.texts("exclude") or (),
            table.texts("tags"),
            cast("Literal['serve', 'leave-out']", deprecated),
            _effects(table),
            is_given=any(key in table for key in ("include", "exclude", "tags")),
        )

    def wants(self, head: OperationHead) -> bool:
        """Return whether an operation is wanted; one whose tags are not known is, whatever `tags` has."""
        is_included = any(_is_meant(pattern, head) for pattern in self.include)
        if not is_included or any(_is_meant(pattern, head) for pattern in self.exclude):
            return False
        if head.is_deprecated and self.deprecated == "leave-out":
            return False
        return self.tags is None or head.tags is None or any(matches(self.tags, tag) for tag in head.tags)

    def effect_of(self, operation: OperationHead | ImportedOperation) -> Effect | None:
        """Return the effect that the operator set for an operation, if so."""
        return next((effect for each, effect in self.effects.items() if _is_meant(each, operation)), None)

    def doubts(self, table: Table, heads: Sequence[OperationHead]) -> Iterator[str]:
        """Yield a warning for each pattern that matches none of the documents' operations or tags.

        Raises the table's exception for a name without a wildcard that the documents do not have.
        """
        include = self.include if "include" in table else ()  # a warning names what the operator wrote
        patterns = (("include", include), ("exclude", self.exclude), ("effects", tuple(self.effects)))
        wanted = {head for head in heads if self.wants(head)}
        for key, given in patterns:
            yield from _vain_patterns(table, key, given, heads)
            if key != "exclude":
                yield from _unwanted(table, key, given, heads, wanted)
        yield from _vain_tags(table, self.tags or (), heads)


def _is_meant(pattern: str, operation: OperationHead | ImportedOperation) -> bool:
    """Return whether a pattern matches an operation's name, or its method and path."""
    if " " in pattern:  # no name has a space
        return any(matches((pattern,), place) for place in operation.places)
    return matches((pattern,), operation.name)


def _vain_patterns(
    table: Table, key: str, patterns: tuple[str, ...], heads: Sequence[OperationHead]
) -> Iterator[str]:
    for at, pattern in enumerate(patterns):
        matched = [head for head in heads if _is_meant(pattern, head)]
        if not matched and not is_pattern(pattern):
            raise table.wrong(key, missing_operation(pattern, heads))
        if not matched:
            yield str(table.wrong(key, f"has {pattern[:80]!r}, which matches no operation of the document"))
        elif key == "effects" and all(
            any(_is_meant(before, head) for before in patterns[:at]) for head in matched
        ):
            same = f"has {pattern[:80]!r} after patterns that match the same; put it first"
            yield str(table.wrong(key, same))


def missing_operation(name: str, operations: Sequence[OperationHead | ImportedOperation]) -> str:
    """Return the sentence on a name that no operation has, or that none of them has alone."""
    renamed = next((each for each in operations if each.own_name == name), None)
    if renamed is not None:
        return (
            f"names {name[:80]!r}, which is not the name of a tool: it is shared or too long; "
            f"write {renamed.name!r}, or {renamed.places[0]!r}"
        )
    by_place = [place for each in operations for place in each.places]
    known = by_place if " " in name else [each.name for each in operations]
    hint = did_you_mean(name, known, "use the operations that it has")
    return f"names {name[:80]!r}, and the document has no such operation; {hint}"


def _vain_tags(table: Table, patterns: tuple[str, ...], heads: Sequence[OperationHead]) -> Iterator[str]:
    tags = sorted({tag for head in heads for tag in head.tags or ()})
    for pattern in patterns:
        if any(matches((pattern,), tag) for tag in tags):
            continue
        if not is_pattern(pattern):
            hint = did_you_mean(pattern, tags, "use the tags that it has")
            raise table.wrong("tags", f"names {pattern[:80]!r}, and the document has no such tag; {hint}")
        yield str(table.wrong("tags", f"has {pattern[:80]!r}, which matches no tag of the document"))


def _unwanted(
    table: Table,
    key: str,
    patterns: tuple[str, ...],
    heads: Sequence[OperationHead],
    wanted: Collection[OperationHead],
) -> Iterator[str]:
    """Yield the patterns for operations that the operator leaves out himself."""
    for pattern in patterns:
        matched = [head for head in heads if _is_meant(pattern, head)]
        if matched and not any(head in wanted for head in matched):
            left_out = "is left out by include, exclude, tags or deprecated"
            yield str(table.wrong(key, f"has {pattern[:80]!r}, and what it matches {left_out}"))


def _effects(table: Table) -> dict[str, Effect]:
    if "effects" not in table:
        return {}
    given = table.table("effects")
    return {pattern: Effect(given.choice(pattern, Effect) or Effect.WRITE) for pattern in given}
