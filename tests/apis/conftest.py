from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.left_out_operations import LeftOutOperation
from portbook.apis.openapi.document_files import Documents
from portbook.apis.openapi.operations_and_names import ImportedOperation, read_openapi
from portbook.apis.openapi.parameters_and_path_keys import ANY_ARGUMENT, ArgumentRules


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write files, and read the operations of the first one."""

    def read(
        *documents: dict[str, Any] | str, rules: ArgumentRules = ANY_ARGUMENT, **others: Any
    ) -> list[ImportedOperation | LeftOutOperation]:
        for name, document in {"api.json": documents[0], **others}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document if isinstance(document, str) else json.dumps(document))
        return read_openapi(Documents(tmp_path / "api.json"), rules=rules)

    return read
