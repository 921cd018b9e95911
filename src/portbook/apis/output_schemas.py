"""Output schemas of API tools: which cannot check results, which are listed, which allow null."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.apis.openapi.operations_and_names import ImportedOperation
from portbook.apis.table_reader import Table
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, validator_for
from portbook.tools.spec import ToolSpec

__all__ = ["is_small_enough_to_list", "or_nothing", "without_usable_results"]

# Tools whose results cannot be checked: left out, or served unchecked where the operator allows it.


def without_usable_results(
    table: Table, imported: dict[str, ImportedOperation], specs: dict[str, ToolSpec], warnings: list[str]
) -> list[LeftOutOperation]:
    """Take the tools whose results cannot be checked out of `specs`, and return why.

    They stay, marked as unchecked, where the operator allows it.
    """
    is_allowed = table.choice("unchecked_outputs", ("leave-out", "allow")) == "allow"
    left_out: list[LeftOutOperation] = []
    unchecked: list[str] = []
    for name, operation in imported.items():
        problem = _problem_of_result(operation, specs[name])
        if problem is None:
            continue
        if is_allowed:
            unchecked.append(name)
            specs[name] = replace(
                specs[name], output_schema=True, outputs_by_status=(), is_result_unchecked=True
            )
        else:
            left_out.append(operation._replace(name=name).left_out(Cause.OUTPUT_SCHEMA, problem))
            del specs[name]
    if unchecked:
        what = f"lets {len(unchecked)} tools give results that are not checked, such as {unchecked[0]}"
        warnings.append(str(table.wrong("unchecked_outputs", what)))
    return left_out


def _problem_of_result(operation: ImportedOperation, spec: ToolSpec) -> str | None:
    """Return why the result of an imported tool cannot be checked, or None where it can.

    A table may have replaced the document's output schema.
    """
    if spec.are_schemas_checked:
        return operation.output_problem
    try:
        validator_for(spec.output_schema)
    except BadSchema as error:
        return str(error)
    return None


# The result of an API that does something and answers with nothing: null.
#
# Many APIs answer 204, or with an empty body, where their document has an object. To withhold that would not
# undo what they did. The schema that such a tool announces allows null, so that no result breaks the schema.
# An operation that only reads is held to its document: its result is what it was called for.

_NULL: Final[JSONObject] = {"type": "null"}


def or_nothing(schema: JSONObject | bool) -> JSONObject | bool:
    """Return a schema that allows null, too; definitions stay at its root, where references find them."""
    if isinstance(schema, bool) or schema == _NULL:
        return schema
    inner = {name: value for name, value in schema.items() if name != "$defs"}
    alternatives = inner["anyOf"] if inner.keys() == {"anyOf"} else [inner]
    assert isinstance(alternatives, list)
    if _NULL in alternatives:
        return schema
    united: JSONObject = {"anyOf": [*alternatives, _NULL]}
    return {**united, "$defs": schema["$defs"]} if "$defs" in schema else united


# Whether an imported tool's output schema is small enough for lists.
#
# A document's schemas refer to each other, and a schema in a list has to hold all that it refers to: every
# tool of a large API would repeat half of its document. The schema is left out of lists then, and still
# checks every result.

# A page of 100 tools then holds less than a megabyte of output schemas.
_MAX_CHARACTERS: Final = 8_192

# What a member or an item takes beside its text: quotes, a colon, a comma.
_PUNCTUATION: Final = 4


def is_small_enough_to_list(schema: JSON) -> bool:
    """Return whether a schema has at most about 8 KiB as JSON; looks at no more of it than that."""
    left = _MAX_CHARACTERS
    waiting: list[JSON] = [schema]
    while waiting and left >= 0:
        value = waiting.pop()
        left -= _PUNCTUATION
        if isinstance(value, dict):
            left -= sum(map(len, value)) + _PUNCTUATION * len(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str):
            left -= len(value)
    return left >= 0
