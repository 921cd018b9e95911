"""Libraries without modules that they seldom use: such a module is there as soon as something uses it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.portbook_process import PORTBOOK, environment

BEFORE = """
import sys
from portbook.text.stand_ins import import_asyncio
import_asyncio()
import asyncio
assert "ssl" not in sys.modules and "asyncio.sslproto" not in sys.modules
"""


def case(name: str, *values: object) -> object:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        case("nothing uses it", "asyncio.run(asyncio.sleep(0)); print('ssl' in sys.modules)", "False"),
        case("a tool imports it", "import ssl; print(ssl.__name__, hasattr(ssl, '__file__'))", "ssl True"),
        case(
            "asyncio knows its classes",
            "import ssl; print(asyncio.base_events.ssl.SSLSocket is ssl.SSLSocket)",
            "True",
        ),
        case(
            "its protocol is asyncio's own",
            "late = asyncio.sslproto.SSLProtocol; import asyncio.sslproto as real;"
            "print(late is real.SSLProtocol, asyncio.sslproto is real)",
            "True True",
        ),
        case(
            "a socket of TLS is still refused where asyncio refuses it",
            "import socket, ssl\n"
            "async def read():\n"
            "    context = ssl.create_default_context()\n"
            "    with context.wrap_socket(socket.socket(), server_hostname='a') as own:\n"
            "        await asyncio.get_running_loop().sock_recv(own, 1)\n"
            "try: asyncio.run(read())\n"
            "except TypeError as error: print(error)",
            "Socket cannot be of type SSLSocket",
        ),
        case(
            "a connection with TLS",
            "import ssl\n"
            "async def talk():\n"
            "    def answer(_, writer): writer.write(b'no TLS here'); writer.close()\n"
            "    server = await asyncio.start_server(answer, '127.0.0.1', 0)\n"
            "    port = server.sockets[0].getsockname()[1]\n"
            "    try: await asyncio.open_connection('127.0.0.1', port, ssl=ssl.create_default_context())\n"
            "    except ssl.SSLError as error: print(error.reason)\n"
            "asyncio.run(talk())",
            "WRONG_VERSION_NUMBER",
        ),
    ],
)
def test_tls_is_there_with_its_first_use(script: str, expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", BEFORE + script], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == expected, done.stderr


API = {
    "openapi": "3.1.0",
    "info": {"title": "a", "version": "1"},
    "paths": {"/a": {"get": {"operationId": "look", "responses": {"200": {"description": "here"}}}}},
}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        case("nothing is behind it", "", False),
        case("an MCP server over STDIO", '[mcp.a]\ncommand = ["no-such-program"]\nstart = "lazy"', False),
        case("an MCP server over HTTP", '[mcp.a]\nurl = "http://127.0.0.1:9/mcp"\nstart = "lazy"', True),
        case("an API", '[http.a]\nbase_url = "http://127.0.0.1:9"\nopenapi = "api.json"', True),
    ],
)
def test_a_server_that_will_open_connections_imports_tls_at_its_start(
    settings: str, expected: bool, tmp_path: Path
) -> None:
    # asyncio uses it for connections without TLS, too: the first call would wait for it.
    (tmp_path / "api.json").write_text(json.dumps(API))
    (tmp_path / "tools.py").write_text("from portbook import Toolset\ntoolset = Toolset('start')\n")
    (tmp_path / "portbook.toml").write_text(
        f"[audit]\ncheckpoint_s = 0\n[docs]\nenabled = false\n{settings}\n"
    )
    done = subprocess.run(
        [PORTBOOK[0], "-X", "importtime", *PORTBOOK[1:], "serve", "--stdio", "tools.py"],
        input="",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(),
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (re.search(r"^import time:.*\|\s+ssl$", done.stderr, re.MULTILINE) is not None) is expected


def test_what_is_imported_already_stays_as_it_is() -> None:
    script = "import ssl, asyncio; from portbook.text.stand_ins import import_asyncio; import_asyncio();"
    script += "import sys; print(asyncio.base_events.ssl is ssl is sys.modules['ssl'])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


def test_ids_are_made_without_the_module_that_names_the_system() -> None:
    script = """
import sys
from portbook.text.stand_ins import import_uuid
import_uuid()
import uuid
print("platform" in sys.modules, uuid.uuid4().version, uuid._LINUX, uuid._AIX)
import platform
print(platform is sys.modules["platform"], bool(platform.python_version()))
"""
    alone = "import uuid; print(uuid._LINUX, uuid._AIX)"
    here, there = (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60).stdout
        for code in (script, alone)
    )
    assert here == f"False 4 {there}True True\n"


def outputs(*scripts: str) -> list[tuple[str, str]]:
    """What each script prints to standard output and standard error, in a process of its own."""
    done = [
        subprocess.run([sys.executable, "-c", each], capture_output=True, text=True, timeout=60)
        for each in scripts
    ]
    return [(each.stdout, each.stderr) for each in done]


STAND_INS = "from portbook.text.stand_ins import *\n"
ABSENT = "import sys; assert not [name for name in {names!r} if name in sys.modules], [*sys.modules]\n"


@pytest.mark.parametrize(
    ("before", "absent", "script"),
    [
        case(
            "texts of click",
            "import_click()",
            ("gettext", "locale", "tokenize"),
            "import click\n"
            "@click.command()\n"
            "@click.argument('files', nargs=2)\n"
            "def both(files): 'Take two.'\n"
            "for given in (['--help'], ['one'], ['--nothing']):\n"
            "    try: both.main(given, 'both', standalone_mode=False)\n"
            "    except click.ClickException as error: print(error.format_message())\n",
        ),
        case(
            "source text, and a catalogue that a tool brings",
            "import_click()",
            ("gettext", "tokenize"),
            "import click, inspect, json, gettext, tokenize\n"
            "print(inspect.getsource(json.JSONDecoder)[:60], gettext.ngettext('a', 'b', 2), tokenize.NAME)\n",
        ),
        case(
            "what asyncio logs",
            "import_asyncio()",
            ("logging", "subprocess", "textwrap"),
            "import asyncio\n"
            "async def tell():\n"
            "    loop = asyncio.get_running_loop()\n"
            "    loop.call_exception_handler({'message': 'something is odd'})\n"
            "    loop.set_debug(True); loop.call_exception_handler({'message': 'and again'})\n"
            "asyncio.run(tell())\n"
            "print(asyncio.log.logger.name, asyncio.log.logger.getEffectiveLevel())\n",
        ),
        case(
            "a level that a tool sets",
            "import_asyncio()",
            ("logging",),
            "import asyncio, logging, sys\n"
            "logging.basicConfig(level=logging.DEBUG, stream=sys.stdout)\n"
            "asyncio.run(asyncio.sleep(0))\n"
            "asyncio.log.logger.disabled = True\n"
            "asyncio.log.logger.error('not told'); print(logging.getLogger('asyncio').disabled)\n",
        ),
        case(
            "where a record of asyncio is from, and who logs it",
            "import_asyncio()",
            ("logging",),
            "import asyncio, logging, sys\n"
            "form = '%(name)s %(filename)s %(funcName)s'\n"
            "logging.basicConfig(level=logging.DEBUG, stream=sys.stdout, format=form)\n"
            "asyncio.run(asyncio.sleep(0))\n",
        ),
        case(
            "what failed and is told when Python ends",
            "import_asyncio()",
            ("logging", "textwrap", "tokenize"),
            "import asyncio\n"
            "class Left: pass\n"
            "async def lose():\n"
            "    Left.failed = asyncio.get_running_loop().create_future()\n"
            "    Left.failed.set_exception(ExceptionGroup('lost', [ValueError('one')]))\n"
            "asyncio.run(lose())\n",
        ),
        case(
            "a function that is replaced for a while",
            "import_asyncio()",
            ("subprocess",),
            "import asyncio, asyncio.base_events, unittest.mock\n"
            "with unittest.mock.patch('subprocess.list2cmdline', 'replaced'):\n"
            "    print(asyncio.base_events.subprocess.list2cmdline)\n"
            "print(asyncio.base_events.subprocess.list2cmdline == 'replaced')\n",
        ),
        case(
            "processes, and groups of exceptions",
            "import_asyncio()",
            ("subprocess", "textwrap"),
            "import asyncio, sys, traceback\n"
            "async def start():\n"
            "    pipe = asyncio.subprocess.PIPE\n"
            "    say = (sys.executable, '-c', 'print(5)')\n"
            "    started = await asyncio.create_subprocess_exec(*say, stdout=pipe)\n"
            "    print(await started.communicate())\n"
            "asyncio.run(start())\n"
            "print(*traceback.format_exception(ExceptionGroup('all', [ValueError('one')])))\n"
            "import subprocess; print(subprocess.PIPE, subprocess.STDOUT, subprocess.DEVNULL)\n",
        ),
        case(
            "addresses in URLs",
            "import_urls()",
            ("ipaddress",),
            "from urllib.parse import urlsplit\n"
            "for url in ('http://[::1]:5/a', 'http://[v1.x]/', 'http://[1.2.3.4]/', 'http://[nothing]/'):\n"
            "    try: print(urlsplit(url).netloc)\n"
            "    except ValueError as error: print(error)\n",
        ),
    ],
)
def test_what_a_stand_in_stands_for_works_as_without_it(
    before: str, absent: tuple[str, ...], script: str
) -> None:
    with_it, without = outputs(
        f"{STAND_INS}{before}\n{ABSENT.format(names=absent)}import sys\n{script}", f"import sys\n{script}"
    )
    assert with_it == without
    assert with_it != ("", "")


def test_no_stand_in_is_where_a_second_thread_could_import_it() -> None:
    script = f"""
{STAND_INS}
import sys, threading
going = threading.Event()
thread = threading.Thread(target=going.wait)
thread.start()
import_asyncio()
print([name for name in ("logging", "ssl", "subprocess", "textwrap") if name not in sys.modules])
going.set()
thread.join()
"""
    assert outputs(script) == [("[]\n", "")]
