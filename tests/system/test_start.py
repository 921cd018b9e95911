"""What a start imports: a count that must not grow, and modules that must not be there.

Importing is nearly all that a start does. Python itself tells of each module (`-X importtime`), so
nothing in the server is instrumented.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.portbook_process import PORTBOOK, environment

PLAIN = """
from portbook import Toolset

toolset = Toolset("start")

@toolset.tool(effect="read")
async def echo(text: str) -> dict[str, str]:
    return {"text": text}
"""

COLLECTOR = """
import gc

from portbook import Toolset

toolset = Toolset("start")

@toolset.tool(effect="read", inline=True)
def echo(text: str) -> dict[str, str]:
    return {"text": text, "state": f"{gc.isenabled()} {gc.get_freeze_count() > 10_000}"}
"""

WITH_A_MODEL = """
from pydantic import BaseModel

from portbook import Toolset

toolset = Toolset("start")

class Echo(BaseModel):
    text: str
    pages: str = ""

@toolset.tool(effect="read")
async def echo(text: str) -> Echo:
    return Echo(text=text)
"""

CONVERSATION = b"""\
{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},\
"clientInfo":{"name":"start","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello"}}}
"""

# Modules of Portbook that a start and a first call import. Lower a figure when you can.
COMMITTED = 159

# Each is needed by something that this server does not do.
NEVER = [
    "_hashlib",  # OpenSSL, for which there is too little to hash
    "apsw",  # no call needs the store
    "click",  # the line is plain
    "bisect",  # no place in the settings is named
    "difflib",  # nothing is misspelt
    "gettext",  # no text is translated
    "http.client",
    "httptools",
    "importlib.metadata",
    "importlib.resources",
    "ipaddress",
    "locale",
    "logging",
    "nacl",
    "platform",  # only the name of the system is asked for
    "ssl",  # asyncio gets it with the first use
    "subprocess",
    "tempfile",
    "textwrap",
    "tokenize",
    "uvicorn",
    "uvloop",
    "zipfile",
    "portbook.apis",
    "portbook.assets.library",
    "portbook.builtin",
    "portbook.envelope.request_for_envelope",
    "portbook.envelope.result_put_into_envelope",
    "portbook.executors.http",
    "portbook.net.destinations",
    "portbook.net.http_client",
    "portbook.provenance.record_inputs_and_outputs",
    "portbook.provenance.signing",
    "portbook.policy.rules_without_effect",
    "portbook.policy.where_condition",
    "portbook.schema.evaluation_cost",
    "portbook.schema.explanation_cost",
    "portbook.app.official_schema_override",
    "portbook.stores.sqlite_writer",
    "portbook.tools.asset_tool_schemas",
    "portbook.tools.content_blocks",
    "portbook.tools.http_operation",
    "portbook.tools.questions",
    "portbook.tools.resource_prompt_and_completion_functions",
]


# What a start makes beside modules: patterns and data classes of ours, each a tenth to half a millisecond.
# And Python that is compiled from text: for a data class, a named tuple, a type hint.
COUNTING = """
import atexit, builtins, dataclasses, re, runpy, sys

made = {"patterns": [], "dataclasses": [], "texts": []}
compile_pattern, make_class = re._compiler.compile, dataclasses._process_class

def ours():
    frame = sys._getframe(2)
    makers = ("re", "dataclasses", "typing", "collections", "__main__")
    while frame is not None and frame.f_globals["__name__"].partition(".")[0] in makers:
        frame = frame.f_back
    return frame is not None and frame.f_globals["__name__"].startswith("portbook")

def counted_pattern(pattern, flags=0):
    if ours():
        made["patterns"].append(pattern)
    return compile_pattern(pattern, flags)

def counted_class(cls, *options, **named):
    if cls.__module__.startswith("portbook"):
        made["dataclasses"].append(cls.__qualname__)
    return make_class(cls, *options, **named)

def counting(compiles):
    def counted(source, *scopes, **named):
        if isinstance(source, str) and ours():
            made["texts"].append(source)
        return compiles(source, *scopes, **named)
    return counted

re._compiler.compile, dataclasses._process_class = counted_pattern, counted_class
builtins.compile, builtins.eval, builtins.exec = map(counting, (compile, eval, exec))
atexit.register(lambda: print("made", made, file=sys.stderr))
sys.argv[0] = "portbook"
runpy.run_module("portbook", run_name="__main__", alter_sys=True)
"""

# Lower these figures, too. A pattern is compiled when it is used, by `late_pattern`. A data class is worth it
# where its fields are read with every call; elsewhere a named tuple takes a fifth of the time to make.
PATTERNS = 5
DATACLASSES = 0
TEXTS = 36

# What is in memory after the first call, beside an interpreter with the libraries that every server needs.
LIBRARIES = "import asyncio, jiter, jsonschema_rs, orjson, tomllib"
MEMORY = 1.4
A_MODEL = "from pydantic import BaseModel\nclass Echo(BaseModel):\n    text: str"
MEMORY_WITH_A_MODEL = 1.15


def serve_once(
    toolset: str, folder: Path, command: Sequence[str] = ("-X", "importtime", *PORTBOOK[1:])
) -> tuple[str, str]:
    """Serve a toolset over STDIO for one call; return what it wrote to standard output and standard error."""
    (folder / "start_tools.py").write_text(toolset)
    # The checkpoint at the end of a run needs the store, and is no part of its start.
    (folder / "portbook.toml").write_text("[audit]\ncheckpoint_s = 0\n[docs]\nenabled = false\n")
    done = subprocess.run(
        [PORTBOOK[0], *command, "serve", "--stdio", "start_tools.py"],
        input=CONVERSATION,
        capture_output=True,
        cwd=folder,
        env=environment(),
        timeout=60,
    )
    assert b'"text":"hello"' in done.stdout, done.stderr.decode()[-2000:]
    return done.stdout.decode(), done.stderr.decode()


def imported(toolset: str, folder: Path) -> set[str]:
    """Return the names of all modules that are imported to serve one call."""
    _, told = serve_once(toolset, folder)
    return set(re.findall(r"^import time:.*\|\s+(\S+)$", told, re.MULTILINE))


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return imported(PLAIN, tmp_path_factory.mktemp("start"))


@pytest.mark.parametrize("name", [*NEVER, "pydantic", "pydantic_core"])
def test_a_start_does_not_import_what_it_does_not_serve(name: str, modules: set[str]) -> None:
    assert "portbook.pipeline" in modules
    assert [each for each in modules if each == name or each.startswith(f"{name}.")] == []


def test_a_start_does_not_import_a_tenth_more_of_portbook_than_it_did(modules: set[str]) -> None:
    own = sorted(each for each in modules if each.partition(".")[0] == "portbook")
    assert len(own) <= COMMITTED * 1.1, own


def test_a_toolset_with_a_model_adds_pydantic_and_little_else(tmp_path: Path, modules: set[str]) -> None:
    added = imported(WITH_A_MODEL, tmp_path) - modules
    assert "pydantic" in added
    assert added.isdisjoint({"importlib.metadata", "zipfile"})  # no plugin of pydantic is installed
    assert added.isdisjoint({"_hashlib", "hmac"})  # and no `SecretStr` is compared
    assert {each for each in added if each.partition(".")[0] == "portbook"} == {
        "portbook.schema.evaluation_cost",
        "portbook.schema.references",
        "portbook.tools.pydantic_conversion",
        "portbook.tools.pydantic_schemas_and_forms",
    }


def test_the_collector_does_not_look_again_at_what_the_start_made(tmp_path: Path) -> None:
    # Otherwise each of its full rounds walks over every tool, and a call costs more the more there are.
    answers, _ = serve_once(COLLECTOR, tmp_path)
    assert "True True" in answers


def test_a_start_does_not_make_or_compile_a_tenth_more_than_it_did(tmp_path: Path) -> None:
    _, told = serve_once(PLAIN, tmp_path, ("-c", COUNTING))
    made = ast.literal_eval(told.rpartition("made ")[2])
    assert len(made["patterns"]) <= PATTERNS * 1.1, made["patterns"]
    assert len(made["dataclasses"]) <= DATACLASSES * 1.1, made["dataclasses"]
    assert len(made["texts"]) <= TEXTS * 1.1, made["texts"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's memory in /proc")
@pytest.mark.parametrize(
    ("toolset", "libraries", "most"),
    [
        pytest.param(PLAIN, LIBRARIES, MEMORY, id="plain"),
        pytest.param(WITH_A_MODEL, f"{LIBRARIES}\n{A_MODEL}", MEMORY_WITH_A_MODEL, id="with a model"),
    ],
)
def test_a_start_takes_little_memory_beside_that_of_its_libraries(
    toolset: str, libraries: str, most: float, tmp_path: Path
) -> None:
    resident = "open('/proc/self/statm').read().split()[1]"
    bare = subprocess.run(
        [PORTBOOK[0], "-c", f"{libraries}\nprint({resident})"], capture_output=True, env=environment()
    )
    reading = toolset.replace('return {"text": text}', f'return {{"text": text, "pages": {resident}}}')
    reading = reading.replace("return Echo(text=text)", f"return Echo(text=text, pages={resident})")
    answers, _ = serve_once(reading, tmp_path, PORTBOOK[1:])
    pages = re.search(r'"pages":"([0-9]+)"', answers)
    assert pages is not None, answers
    assert int(pages[1]) <= int(bare.stdout) * most
