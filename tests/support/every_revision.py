"""A connection in each revision of MCP: calls as it wants them, and a validator of what it answers."""

from __future__ import annotations

import pytest

from portbook.protocol.message_validation import SchemaValidator
from portbook.schema.official_schemas import SchemaStore
from support.in_process_connection import EVERY_REVISION, params

VALIDATOR = SchemaValidator(SchemaStore())
VALIDATOR.initialize()

every_revision = pytest.mark.parametrize("revision", EVERY_REVISION)


def call(revision: str, name: object, **arguments: object) -> dict[str, object]:
    return params(revision, name=name, arguments=arguments)
