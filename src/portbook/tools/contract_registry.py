"""`SchemaRegistry`: compiles the contract schemas and the tool bundles of a folder into validators.

A schema root holds contract schemas, such as `envelope.schema.json`, and a folder `tools/` of bundles
`{tool, input, output?}`. A contract is found by its file name and by its `$id`, also in references between
contracts. Contracts that the root lacks come from Portbook's own, and so do those of the tools that Portbook
brings along. Reads files only, and only when asked.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, Literal

from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.schema.engine import BadSchema, Validator, validator_for
from portbook.schema.violation_wording import escape_pointer
from portbook.text.named_tuple import NamedTuple
from portbook.tools.spec import ToolSpec
from portbook.tools.tool_names import slug_of
from portbook.wire.parsing import parse

__all__ = ["BadBundle", "Bundle", "SchemaRegistry", "ToolIO", "shipped_folder"]

_ENVELOPE: Final = "envelope.schema.json"
_TOOL_IO: Final = "tool_io.schema.json"
_EXECUTE: Final = "execute.schema.json"


class BadBundle(ValueError):
    """A schema file that cannot be used; the message names the file, the pointer and the fix."""

    def __init__(self, path: Path, pointer: str, message: str) -> None:
        super().__init__(f"{path}: {pointer or '(root)'}: {message}")
        self.path = path
        self.pointer = pointer


class Bundle(NamedTuple):
    """One tool's bundle as written: its name and its two schemas."""

    tool: str
    path: Path
    input: JSONObject
    output: JSONObject | bool
    description: str | None


class ToolIO(NamedTuple):
    """One tool's compiled input and output schemas."""

    tool: str
    input_validator: Validator
    output_validator: Validator

    @property
    def input(self) -> Validator:
        """Return the validator of the arguments."""
        return self.input_validator

    @property
    def output(self) -> Validator:
        """Return the validator of the result."""
        return self.output_validator


class SchemaRegistry:
    """Loads and compiles the schemas of one root; loading twice gives the same objects."""

    def __init__(self, schema_root: str | os.PathLike[str] | None = None) -> None:
        """Use the schemas under `schema_root`, by default Portbook's own."""
        self._shipped = shipped_folder("schemas")
        self.schema_root = Path(schema_root) if schema_root is not None else self._shipped
        self._contracts: dict[str, tuple[Path, Any]] | None = None
        self._bundles: dict[str, Bundle] | None = None
        self._loaded: dict[str, ToolIO] = {}
        self._served: dict[str, ToolSpec] = {}

    def add(self, specs: Iterable[ToolSpec]) -> None:
        """Know the contracts of these tools too, such as `toolset.specs()`."""
        for spec in specs:
            if spec.kind == "tool":
                self._served[spec.name] = spec
                self._loaded.pop(spec.name, None)

    def load(self, name: str) -> Validator:
        """Return the validator of the contract schema with this file name or `$id`.

        Raises `KeyError` where there is none, `BadBundle` where one cannot be read or compiled.
        """
        contracts = self._by_name()
        path, document = contracts[name]

        def find(reference: str) -> Any:
            return contracts[reference][1] if reference in contracts else None

        from portbook.schema.references import bundle  # late: few processes compile a contract

        return _compiled(path, bundle(document, find), ())

    def load_envelope(self) -> Validator:
        """Return the validator of a call's envelope.

        Raises `BadBundle` where the schema cannot be read or compiled.
        """
        return self._contract(_ENVELOPE)

    def load_execute(self) -> Validator:
        """Return the validator of a body of `POST /execute`.

        Raises `BadBundle` where the schema cannot be read or compiled.
        """
        return self._contract(_EXECUTE)

    def load_tool_io(self, tool_id: str) -> ToolIO:
        """Return the validators of one tool, named with or without `mcp.tool:`.

        Raises `KeyError` for an unknown tool, `BadBundle` where any bundle of the folder is invalid.
        """
        slug = slug_of(tool_id)
        if slug not in self._loaded:
            given, returned = self._schemas_of(slug)
            self._loaded[slug] = ToolIO(slug, validator_for(given), validator_for(returned))
        return self._loaded[slug]

    def _schemas_of(self, slug: str) -> tuple[JSONObject, JSONObject | bool]:
        """Return the input and the output schema of a tool.

        1. Its bundle in the root: what an operator pins is in force.
        2. Those of a tool that was added.
        3. Those of a tool that Portbook brings along.

        Raises `KeyError` where there is none of these.
        """
        if (bundle := self.bundles().get(slug)) is not None:
            return bundle.input, bundle.output
        if (spec := self._served.get(slug)) is not None:
            return spec.input_schema, spec.output_schema
        from portbook.tools.asset_tool_schemas import INPUTS, OUTPUTS  # late: large, and seldom asked for

        if slug in INPUTS:
            return INPUTS[slug], OUTPUTS[slug]
        bundle = SchemaRegistry().bundles()[slug]
        return bundle.input, bundle.output

    def bundles(self) -> dict[str, Bundle]:
        """Return every bundle of the folder by its tool's name, each validated and compiled.

        Raises `BadBundle` for the first invalid one.
        """
        if self._bundles is None:
            bundles: dict[str, Bundle] = {}
            for path in sorted((self.schema_root / "tools").glob("*.json")):
                bundle = self._read_bundle(path)
                if bundle.tool in bundles:
                    raise BadBundle(
                        path, "/tool", f"{bundles[bundle.tool].path.name} is for the same tool; keep one"
                    )
                bundles[bundle.tool] = bundle
            self._bundles = bundles
        return self._bundles

    def _by_name(self) -> dict[str, tuple[Path, Any]]:
        """Return every contract schema and its file by file name and `$id`; those of the root come first."""
        if self._contracts is None:
            contracts: dict[str, tuple[Path, Any]] = {}
            for folder in dict.fromkeys((self._shipped, self.schema_root)):
                for path in sorted(folder.glob("*.json")):
                    document = _read(path)
                    contracts[path.name] = path, document
                    identifier = document.get("$id") if isinstance(document, dict) else None  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType] # schemas are Any
                    if isinstance(identifier, str):
                        contracts[identifier] = path, document
            self._contracts = contracts
        return self._contracts

    def _contract(self, name: str) -> Validator:
        path = self.schema_root / name
        if not path.exists():
            path = self._shipped / name
        return _compiled(path, _read(path), ())

    def _read_bundle(self, path: Path) -> Bundle:
        document = _read(path)
        if path.is_relative_to(self._shipped):  # known to be right; compiled where its tool is served
            return _bundle_of(path, document)
        contract = self._contract(_TOOL_IO)
        if not contract.is_valid(document):
            finding = contract.findings(document)[0]
            raise BadBundle(path, finding.pointer, finding.message)
        bundle = _bundle_of(path, document)
        _compiled(path, bundle.input, ("input",))
        _compiled(path, bundle.output, ("output",))
        return bundle


def _bundle_of(path: Path, document: Any) -> Bundle:
    output = document.get("output", True)
    return Bundle(document["tool"], path, document["input"], output, document.get("description"))


def _compiled(path: Path, schema: Any, at: tuple[str, ...]) -> Validator:
    try:
        return validator_for(schema)
    except BadSchema as error:
        finding = error.findings[0]
        raise BadBundle(path, escape_pointer(at) + finding.pointer, finding.message) from None


def _read(path: Path) -> Any:
    try:
        return parse(path.read_bytes())
    except OSError as error:
        raise BadBundle(path, "", f"cannot be read: {error.strerror}") from None
    except Refused as refused:
        raise BadBundle(path, "", refused.findings[0].message) from None


# Locates the files that Portbook ships: inside the wheel, or in a checkout.

_PACKAGE = Path(__file__).resolve().parent.parent
_IN_CHECKOUT = {"schemas": "codex/specs/schemas", "docs": "docs"}


def shipped_folder(what: Literal["schemas", "docs"]) -> Path:
    """Return the folder of the contract schemas or of the documentation."""
    in_wheel = _PACKAGE / "_shipped" / what
    return in_wheel if in_wheel.is_dir() else _PACKAGE.parent.parent / _IN_CHECKOUT[what]
