"""What `import portbook` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import portbook
import portbook.testing
from portbook.access.approval_state_and_binding import Undecidable
from portbook.canonical import NotJSON
from portbook.doors.http.mounted_asgi_app import MountedApp
from portbook.envelope.envelope_check import inspect_envelope
from portbook.envelope.errors_and_warnings import Problem
from portbook.envelope.request_for_envelope import Controls
from portbook.envelope.result_put_into_envelope import (
    Failure,
    NotAnEnvelope,
    ToolFailed,
    enclose,
    failure,
    unwrap,
    wrap,
)
from portbook.errors import CanonicalError, Failed
from portbook.provenance.record_inputs_and_outputs import Subject
from portbook.provenance.signing import BadKey, PublicKey, SigningKey
from portbook.settings import BadSettings
from portbook.testing import (
    async_client,
    call_result,
    client,
    fake_http_api,
    fixed_time,
    questions_and_answers,
)
from portbook.tools import content_blocks, questions
from portbook.tools.context import Context
from portbook.tools.contract_registry import BadBundle, SchemaRegistry
from portbook.tools.images_and_audio import Audio, Image
from portbook.tools.spec import BadTool, NotFound, ToolError
from portbook.tools.toolset import Toolset
from portbook.version import __version__
from support.portbook_process import ROOT


def test_the_package_exports_exactly_these_names() -> None:
    exported = {name: getattr(portbook, name) for name in portbook.__all__}
    contents = ("Blob", "Content", "Embedded", "Message", "ResourceLink", "Text")
    asked = ("Form", "OpenPage", "Roots", "Sample")
    assert exported == {
        **{name: getattr(content_blocks, name) for name in contents},
        **{name: getattr(questions, name) for name in asked},
        "Audio": Audio,
        "Image": Image,
        "BadBundle": BadBundle,
        "BadKey": BadKey,
        "BadTool": BadTool,
        "CanonicalError": CanonicalError,
        "Context": Context,
        "Controls": Controls,
        "Failed": Failed,
        "Failure": Failure,
        "MountedApp": MountedApp,
        "NotAnEnvelope": NotAnEnvelope,
        "NotFound": NotFound,
        "NotJSON": NotJSON,
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


def test_the_package_for_tests_exports_exactly_these_names() -> None:
    exported = {name: getattr(portbook.testing, name) for name in portbook.testing.__all__}
    assert exported == {
        "Answers": questions_and_answers.Answers,
        "ApiRequest": fake_http_api.ApiRequest,
        "ApiResponse": fake_http_api.ApiResponse,
        "Approval": client.Approval,
        "AsyncTestClient": async_client.AsyncTestClient,
        "BadSettings": BadSettings,
        "CallResult": call_result.CallResult,
        "Decided": client.Decided,
        "FixedClock": fixed_time.FixedClock,
        "Inquiry": questions_and_answers.Inquiry,
        "LogMessage": call_result.LogMessage,
        "NoResult": call_result.NoResult,
        "Progress": call_result.Progress,
        "TestClient": client.TestClient,
        "Undecidable": Undecidable,
        "Upstream": fake_http_api.Upstream,
        "Violation": call_result.Violation,
    }


@pytest.mark.parametrize("module", [portbook, portbook.testing], ids=lambda module: module.__name__)
def test_a_star_import_gives_the_same_names(module: ModuleType) -> None:
    names: dict[str, object] = {}
    exec(f"from {module.__name__} import *", names)
    assert names.keys() - {"__builtins__"} == set(module.__all__)


@pytest.mark.parametrize("module", [portbook, portbook.testing], ids=lambda module: module.__name__)
def test_an_unknown_name_is_an_attribute_error_that_says_so(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=f"module '{module.__name__}' has no attribute 'Tolset'"):
        _ = module.Tolset


def test_the_docs_say_what_is_public() -> None:
    sentence = (
        "The public API is `portbook.__all__` and `portbook.testing.__all__`. "
        "Everything else is internal and may move in any release."
    )
    for page in ("docs/reference/python.md", "CONTRIBUTING.md"):
        assert sentence in " ".join((ROOT / page).read_text("utf-8").split())


def test_importing_the_package_loads_neither_the_schema_engine_nor_pydantic() -> None:
    code = (
        "import sys, portbook, portbook.testing; portbook.__version__;"
        "heavy = {'jsonschema_rs', 'pydantic', 'orjson', 'apsw', 'uvicorn', 'nacl'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"[]\n"


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    assert dir(portbook) == sorted(portbook.__all__)
