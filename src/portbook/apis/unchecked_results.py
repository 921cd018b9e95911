"""Tools whose results cannot be checked: left out, or served unchecked where the operator allows it."""

from __future__ import annotations

from dataclasses import replace

from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.apis.openapi.operation_reader import ImportedOperation
from portbook.apis.table_reader import Table
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema
from portbook.tools.spec import ToolSpec

__all__ = ["without_usable_results"]


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
