"""What `import portbook` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import portbook
from portbook.envelope.controls import Controls
from portbook.envelope.enclose import Failure, enclose
from portbook.envelope.inspection import inspect_envelope
from portbook.envelope.problems import Problem
from portbook.envelope.wrap import NotAnEnvelope, ToolFailed, failure, unwrap, wrap
from portbook.errors import CanonicalError
from portbook.provenance.record import Subject
from portbook.provenance.signing import PublicKey, SigningKey
from portbook.tools import content, questions
from portbook.tools.context import Context
from portbook.tools.registry import SchemaRegistry
from portbook.tools.spec import NotFound, ToolError
from portbook.tools.toolset import Toolset
from portbook.version import __version__


def test_the_package_exports_exactly_these_names() -> None:
    exported = {name: getattr(portbook, name) for name in portbook.__all__}
    contents = ("Audio", "Blob", "Content", "Embedded", "Image", "Message", "ResourceLink", "Text")
    asked = ("Form", "OpenPage", "Roots", "Sample")
    assert exported == {
        **{name: getattr(content, name) for name in contents},
        **{name: getattr(questions, name) for name in asked},
        "CanonicalError": CanonicalError,
        "Context": Context,
        "Controls": Controls,
        "Failure": Failure,
        "NotAnEnvelope": NotAnEnvelope,
        "NotFound": NotFound,
        "Problem": Problem,
        "PublicKey": PublicKey,
        "SchemaRegistry": SchemaRegistry,
        "ToolError": ToolError,
        "SigningKey": SigningKey,
        "Subject": Subject,
        "ToolFailed": ToolFailed,
        "Toolset": Toolset,
        "__version__": __version__,
        "enclose": enclose,
        "failure": failure,
        "inspect_envelope": inspect_envelope,
        "unwrap": unwrap,
        "wrap": wrap,
    }


def test_a_star_import_gives_the_same_names() -> None:
    names: dict[str, object] = {}
    exec("from portbook import *", names)
    assert names.keys() - {"__builtins__"} == set(portbook.__all__)


def test_an_unknown_name_is_an_attribute_error_that_says_so() -> None:
    with pytest.raises(AttributeError, match="module 'portbook' has no attribute 'Tolset'"):
        _ = portbook.Tolset  # type: ignore[attr-defined]


def test_importing_the_package_loads_neither_the_schema_engine_nor_pydantic() -> None:
    code = (
        "import sys, portbook; portbook.__version__;"
        "heavy = {'jsonschema_rs', 'pydantic', 'orjson', 'apsw', 'uvicorn', 'nacl'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"
