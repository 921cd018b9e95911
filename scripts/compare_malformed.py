# ruff: noqa: INP001 - a script beside the page that it writes, not a package
"""Send the same malformed messages to Portbook and to two official servers, and write what each answers.

Each message goes to a fresh process over STDIO, after a good handshake and one good call; then comes another
good call. Nothing here judges: the page shows what arrived beside what the specifications ask for.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "reference" / "malformed-messages.md"
NOTICE: Final = "<!-- Generated. Do not edit: run scripts/compare-malformed. -->"

REVISION: Final = "2025-11-25"

# Generous on a loaded machine: only servers that do not answer at all cost this much.
START_SECONDS: Final = 30.0
ANSWER_SECONDS: Final = 2.0
NEXT_SECONDS: Final = 10.0
# An answer that overtakes nothing arrives within this after the next one has.
GRACE_SECONDS: Final = 0.2

WORKERS: Final = 6  # most of them wait for silence
SHOWN: Final = 64  # characters of a server's own words in a cell


@dataclass(frozen=True)
class Message:
    """A malformed message: right in every way but the one that its title names."""

    title: str
    line: bytes
    """With `$text` where the name of the echo tool's argument goes."""
    asked: tuple[str, ...]
    """The outcomes that the specifications allow: keys of `OUTCOMES`, or error codes."""
    rule: str
    """Where they say so, or that they do not."""


@dataclass(frozen=True)
class Server:
    """A server that can be started, with an `echo` tool that takes one string."""

    name: str
    command: tuple[str, ...]
    argument: str
    versions: str


@dataclass(frozen=True)
class Seen:
    """What a server did with one message."""

    answers: tuple[bytes, ...]
    exit_status: int | None
    goes_on: bool
    forbids_extras: bool
    """Whether the listed schema of the echo tool forbids arguments beyond its own."""


OUTCOMES: Final = {
    "error": "an error",
    "result": "the result",
    "isError": "an `isError` result",
    "nothing": "no answer",
    "schema": "what the tool's schema says",
}
EITHER: Final = ("error", "result")  # the receiver may choose, but JSON-RPC 2.0, 5, wants an answer


def _call(arguments: str, *, rest: str = "", identifier: str = '"id":7,') -> bytes:
    params = f'{{"name":"echo","arguments":{arguments}{rest}}}'
    return f'{{"jsonrpc":"2.0",{identifier}"method":"tools/call","params":{params}}}'.encode()


_GOOD: Final = '{"$text":"hello"}'
_INITIALIZE: Final = (
    f'{{"protocolVersion":"{REVISION}","capabilities":{{}},"clientInfo":{{"name":"compare","version":"0"}}}}'
)
_DEPTH: Final = 100_000

MESSAGES: Final = (
    Message(
        "a key twice in the arguments",
        _call('{"$text":"first","$text":"second"}'),
        EITHER,
        "RFC 8259, 4: names should be unique; what becomes of two is unpredictable. RFC 7493 forbids them.",
    ),
    Message(
        "`NaN`",
        _call(_GOOD, rest=',"_meta":{"n":NaN}'),
        ("-32700", "result"),
        "RFC 8259, 6: not JSON, and that is `-32700` (JSON-RPC 2.0, 5.1); but 9 lets readers accept more.",
    ),
    Message(
        "a number beyond every double, `1e999`",
        _call(_GOOD, rest=',"_meta":{"n":1e999}'),
        EITHER,
        "RFC 8259, 6: JSON, but a receiver may limit the range of numbers.",
    ),
    Message(
        "a byte order mark before the message",
        b"\xef\xbb\xbf" + _call(_GOOD),
        EITHER,
        "RFC 8259, 8.1: senders must not add one; receivers may ignore it or treat it as an error.",
    ),
    Message(
        r"half of a surrogate pair, `\ud800`",
        _call(r'{"$text":"\ud800"}'),
        EITHER,
        "RFC 8259, 8.2: the grammar has it, what happens is unpredictable. UTF-8 cannot carry it back.",
    ),
    Message(
        "a byte that is not UTF-8",
        _call('{"$text":"?"}').replace(b"?", b"\xff"),
        ("-32700", "result"),
        "MCP, transports, and RFC 8259, 8.1: it must be UTF-8; but RFC 8259, 9 lets readers accept more.",
    ),
    Message(
        "a message that stops halfway",
        _call(_GOOD)[:60],
        ("-32700",),
        "JSON-RPC 2.0, 5.1. The MCP schema of this revision has no null `id`; without one, it is left out.",
    ),
    Message(
        f"{_DEPTH:,} arrays inside each other",
        _call(_GOOD, rest=f',"_meta":{{"n":{"[" * _DEPTH}{"]" * _DEPTH}}}'),
        EITHER,
        "RFC 8259, 9: a receiver may limit the depth.",
    ),
    Message(
        "`id` null",
        _call(_GOOD, identifier='"id":null,'),
        ("-32600",),
        "MCP, base protocol: the id must not be null. JSON-RPC 2.0, 4: null is discouraged, but a request.",
    ),
    Message(
        "`id` true",
        _call(_GOOD, identifier='"id":true,'),
        ("-32600",),
        "MCP, base protocol: requests must include a string or integer id.",
    ),
    Message(
        "`id` 1.5",
        _call(_GOOD, identifier='"id":1.5,'),
        ("-32600",),
        "MCP, base protocol: requests must include a string or integer id. JSON-RPC 2.0, 4 only advises so.",
    ),
    Message(
        "no `jsonrpc`",
        _call(_GOOD).replace(b'"jsonrpc":"2.0",', b""),
        ("-32600",),
        'JSON-RPC 2.0, 4: it must be exactly "2.0".',
    ),
    Message(
        '`jsonrpc` "1.0"',
        _call(_GOOD).replace(b'"2.0"', b'"1.0"'),
        ("-32600",),
        'JSON-RPC 2.0, 4: it must be exactly "2.0".',
    ),
    Message(
        "`params` is an array",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["echo",{"$text":"hello"}]}',
        ("-32600", "-32602"),
        "The MCP schema has objects only; JSON-RPC 2.0, 4.2 has both.",
    ),
    Message(
        "`tools/call` without a name",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"arguments":{"$text":"hello"}}}',
        ("-32602",),
        "MCP, tools, error handling: a request that fails its schema is a protocol error.",
    ),
    Message(
        "`arguments` is an array",
        _call('["hello"]'),
        ("-32602",),
        "MCP, tools, error handling: a request that fails its schema is a protocol error.",
    ),
    Message(
        "an argument of the wrong type",
        _call('{"$text":5}'),
        ("isError",),
        "MCP, tools, error handling: from this revision on, wrong input is told to the model (SEP-1303).",
    ),
    Message(
        "an argument that the tool does not have",
        _call('{"$text":"hello","extra":1}'),
        ("schema",),
        "JSON Schema: allowed unless `additionalProperties` forbids it. Each server lists its own schema.",
    ),
    Message(
        "an unknown method",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/frobnicate"}',
        ("-32601",),
        "JSON-RPC 2.0, 5.1.",
    ),
    Message(
        "an unknown tool",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"no_such_tool","arguments":{}}}',
        ("-32602",),
        "MCP, tools, error handling: a protocol error; its example has this code.",
    ),
    Message(
        "a cursor that nobody gave out",
        b'{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"cursor":"no-such-cursor"}}',
        ("-32602",),
        "MCP, pagination: invalid cursors should result in this code.",
    ),
    Message(
        "`initialize` a second time",
        f'{{"jsonrpc":"2.0","id":7,"method":"initialize","params":{_INITIALIZE}}}'.encode(),
        EITHER,
        "MCP, lifecycle: it is the first interaction; nothing is said of a second one.",
    ),
    Message(
        "a response with both `result` and `error`",
        b'{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":-32603,"message":"both"}}',
        ("nothing",),
        "JSON-RPC 2.0, 5: both must not be there. Responses are not answered; nobody asked for this one.",
    ),
    Message(
        "a batch",
        b"[" + _call(_GOOD) + b"]",
        ("-32600",),
        "MCP: batches left with 2025-06-18. To a receiver without them it is not a request object.",
    ),
    Message(
        "`tools/call` without an `id`",
        _call(_GOOD, identifier=""),
        ("nothing",),
        "JSON-RPC 2.0, 4.1: a notification, and those are not answered.",
    ),
)


# -- talking


class Conversation:
    """A process and the lines it writes; every wait has an end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self.has_ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip(b"\r\n"))
        self._lines.put(None)

    def send(self, line: bytes) -> None:
        """Write a line; a server that is gone is noticed when reading."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()

    def lines(self, seconds: float) -> Iterator[bytes]:
        """Yield what arrives within `seconds`, or until the server closes its output."""
        until = time.monotonic() + seconds
        while not self.has_ended and (left := until - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=left)
            except queue.Empty:
                return
            if line is None:
                self.has_ended = True
            else:
                yield line

    def exit_status(self) -> int | None:
        """Return the status of a server that ended by itself."""
        if not self.has_ended:
            return None
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(ANSWER_SECONDS)
        return None

    def answer(self, identifier: str, seconds: float) -> tuple[dict[str, Any], list[bytes]]:
        """Return the answer to `identifier`, empty where none comes, and what arrives before it."""
        before: list[bytes] = []
        for line in self.lines(seconds):
            answer = _parsed(line)
            if isinstance(answer, dict) and answer.get("id") == identifier:
                return answer, before
            before.append(line)
        return {}, before


@contextlib.contextmanager
def conversation(server: Server) -> Iterator[Conversation]:
    """Start a server in a folder of its own, shake hands, make a good call; kill it in the end."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(  # noqa: S603 - commands of this file alone
            server.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env={name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")},
        )
        try:
            talk = Conversation(process)
            request = f'{{"jsonrpc":"2.0","id":"first","method":"initialize","params":{_INITIALIZE}}}'
            talk.send(request.encode())
            agreed, _ = talk.answer("first", START_SECONDS)
            talk.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
            talk.send(_good_call(server, "before"))
            works, _ = talk.answer("before", START_SECONDS)
            if not (_is_good(agreed) and _is_good(works)):
                raise RuntimeError(f"{server.name} does not answer well-formed messages")
            # What a server says of its own accord after the handshake belongs to no message of ours.
            list(talk.lines(GRACE_SECONDS))
            yield talk
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()


def _is_good(answer: Mapping[str, Any]) -> bool:
    result = answer.get("result")
    return isinstance(result, dict) and not result.get("isError")


def _good_call(server: Server, identifier: str) -> bytes:
    params = {"name": "echo", "arguments": {server.argument: "good"}}
    return json.dumps({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params}).encode()


def observe(server: Server, message: Message) -> Seen:
    """Start a server for one message, and return what it did with it."""
    with conversation(server) as talk:
        return observe_in(talk, server, message)


def observe_in(talk: Conversation, server: Server, message: Message) -> Seen:
    """Send one message, then a good call, and return what came back."""
    forbids_extras = _forbids_extras(talk)
    talk.send(message.line.replace(b"$text", server.argument.encode()))
    answers: list[bytes] = []
    for line in talk.lines(ANSWER_SECONDS):
        answers.append(line)
        break
    talk.send(_good_call(server, "after"))
    following, more = talk.answer("after", NEXT_SECONDS)
    answers += more
    answers += talk.lines(GRACE_SECONDS)
    return Seen(tuple(answers), talk.exit_status(), _is_good(following), forbids_extras)


def _forbids_extras(talk: Conversation) -> bool:
    talk.send(b'{"jsonrpc":"2.0","id":"list","method":"tools/list"}')
    listed, _ = talk.answer("list", NEXT_SECONDS)
    tools: list[Any] = listed.get("result", {}).get("tools", [])
    return any(
        tool["name"] == "echo" and tool["inputSchema"].get("additionalProperties") is False for tool in tools
    )


def observe_all(servers: Sequence[Server]) -> dict[tuple[str, str], Seen]:
    """Send every message to every server, a few at a time."""
    pairs = [(server, message) for server in servers for message in MESSAGES]
    with ThreadPoolExecutor(WORKERS) as pool:
        seen = pool.map(lambda pair: observe(*pair), pairs)
        return {
            (server.name, message.title): found for (server, message), found in zip(pairs, seen, strict=True)
        }


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


# -- words


def words(seen: Seen, message: Message) -> str:
    """Return what a server did, for a cell of the table."""
    said = [_answer_words(line, message) for line in seen.answers] or ["no answer"]
    if "schema" in message.asked:
        said[-1] += f" (its schema {'forbids' if seen.forbids_extras else 'allows'} it)"
    if seen.exit_status is not None:
        said.append(f"**the process ends** with status {seen.exit_status}")
    elif not seen.goes_on:
        said.append("**the next good call gets no answer**")
    return "; then ".join(said)


def _answer_words(line: bytes, message: Message) -> str:
    answer = _parsed(line)
    if not isinstance(answer, dict):
        return "a batch of answers" if isinstance(answer, list) else "something that is not JSON"
    if "method" in answer:
        return f"a `{answer['method']}` message"
    if isinstance(error := answer.get("error"), dict):
        return f"error `{error.get('code')}`{_id_words(answer, message)}: {_quoted(error.get('message'))}"
    return _result_words(answer.get("result")) + _id_words(answer, message)


def _result_words(result: Any) -> str:
    if not isinstance(result, dict):
        return "a result that is not an object"
    if "content" in result:
        text = " ".join(block.get("text", "") for block in result["content"])
        return f"{'`isError` result' if result.get('isError') else 'result'}: {_quoted(text)}"
    for key, meaning in (("tools", "the list of tools"), ("protocolVersion", "a second handshake")):
        if key in result:
            return f"result: {meaning}"
    return "result: " + ("an empty object" if not result else _quoted(json.dumps(result)))


def _id_words(answer: Mapping[str, Any], message: Message) -> str:
    """Say which id an answer has, where it is not the id of the message."""
    if "id" not in answer:
        return ", no `id`"
    token = json.dumps(answer["id"])
    sent = re.search(rb'"id":([^,]+),', message.line)
    return "" if sent and sent[1].decode() == token else f", `id` {token}"


def _quoted(text: object) -> str:
    """Return the start of a server's own words, harmless in a table."""
    line = " ".join(str(text).split())
    short = line if len(line) <= SHOWN else line[: SHOWN - 1].rstrip() + "…"
    shown = short.encode("utf-8", "backslashreplace").decode()
    return (
        "“" + shown.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "\\`") + "”"
    )


def shown_line(message: Message) -> str:
    """Return a message as one can read it: its start and its end, and bytes that are no text as escapes."""
    text = message.line.replace(b"$text", b"text").decode("utf-8", "backslashreplace")
    text = text.replace("\ufeff", "\\xef\\xbb\\xbf")
    return text if len(text) <= 240 else f"{text[:120]} … {text[-24:]}"


# -- the page


def page(servers: Sequence[Server], seen: Mapping[tuple[str, str], Seen]) -> str:
    """Return the whole page."""
    lines = [
        NOTICE,
        "",
        "# Malformed messages",
        "",
        f"What Portbook answers to {len(MESSAGES)} malformed messages, and what two servers of the MCP",
        "project answer to the same ones.",
        "",
        "| server | versions compared |",
        "| --- | --- |",
        *(f"| {server.name} | {server.versions} |" for server in servers),
        "",
        "```",
        "scripts/compare-malformed",
        "```",
        "",
        "makes this page again. It installs the two servers into environments of their own under `.venv`,",
        "needs their registries for that once, and takes a minute or two.",
        "",
        f"Each message goes over STDIO to a process of its own, after a handshake at {REVISION} and one",
        "good call. It is right in every way but the one named. Then comes another good call. “No answer”",
        f"means that none arrived in {ANSWER_SECONDS:g} seconds, nor with the answer to that next call. An",
        "answer has the `id` of the message unless the cell says otherwise. Quotations are the server's own",
        f"words, cut at {SHOWN} characters. Where the specifications let the receiver choose, “an error or",
        "the result” is asked for: different answers are equally right there.",
        "",
        *_table(servers, seen),
        "",
        "## What can be read from it",
        "",
        *_findings(servers, seen),
        "",
        "## The messages, and where the specifications speak of them",
        "",
    ]
    for message in MESSAGES:
        lines += [f"**{_capital(message.title)}.** {message.rule}", "", "```", shown_line(message), "```", ""]
    return "\n".join(lines)


def _table(servers: Sequence[Server], seen: Mapping[tuple[str, str], Seen]) -> Iterator[str]:
    yield "| message | asked for | " + " | ".join(server.name for server in servers) + " |"
    yield "| --- " * (len(servers) + 2) + "|"
    for message in MESSAGES:
        cells = [words(seen[server.name, message.title], message) for server in servers]
        yield f"| {message.title} | {_asked_words(message)} | " + " | ".join(cells) + " |"


def _asked_words(message: Message) -> str:
    return " or ".join(OUTCOMES.get(outcome, f"`{outcome}`") for outcome in message.asked)


def _findings(servers: Sequence[Server], seen: Mapping[tuple[str, str], Seen]) -> Iterator[str]:
    """Say what the table shows, as far as it can be counted."""
    others = {
        server.name: [m.title for m in MESSAGES if not is_as_asked(seen[server.name, m.title], m)]
        for server in servers
    }
    alike = [m.title for m in MESSAGES if not any(m.title in titles for titles in others.values())]
    yield f"- All {len(servers)} do as asked with: {'; '.join(alike)}."
    for name, titles in others.items():
        yield f"- {name} does " + (
            f"otherwise with: {'; '.join(titles)}." if titles else "as asked with all."
        )
    stopped = {
        server.name: [m.title for m in MESSAGES if not seen[server.name, m.title].goes_on]
        for server in servers
    }
    if not any(stopped.values()):
        yield f"- All {len(servers)} go on after every message: the next good call is answered."
    for name, titles in stopped.items():
        if titles:
            yield f"- {name} does not answer the next good call after: {'; '.join(titles)}."
    yield "- Where no answer comes, a client that waits for one waits until its own deadline."
    yield "- The people who make Portbook chose these messages, knowing how it reads. The table says nothing"
    yield "  of messages that nobody thought of."


def is_as_asked(seen: Seen, message: Message) -> bool:
    """Return whether a server did what the specifications ask for, once, and went on."""
    if not seen.goes_on or len(seen.answers) > 1:
        return False
    asked = set(message.asked)
    if "schema" in asked:
        asked = {"isError", "-32602"} if seen.forbids_extras else {"result"}
    return not asked.isdisjoint(_outcomes(seen))


def _outcomes(seen: Seen) -> set[str]:
    if not seen.answers:
        return {"nothing"}
    answer = _parsed(seen.answers[0])
    if not isinstance(answer, dict):
        return set()
    if isinstance(error := answer.get("error"), dict):
        return {"error", str(error.get("code"))}
    result = answer.get("result")
    if not isinstance(result, dict):
        return set()
    return {"isError", "error"} if result.get("isError") is True else {"result"}


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


# -- the servers


def portbook() -> Server:
    """Return Portbook, from this checkout."""
    from portbook.version import __version__

    tools = ROOT / "tests" / "fixtures" / "sample_tools.py"
    command = (sys.executable, "-m", "portbook", "serve", "--stdio", str(tools))
    return Server("Portbook", command, "text", f"`portbook` {__version__}")


def official_servers() -> tuple[Server, Server]:
    """Return the servers of the MCP project, installed where they are not yet."""
    sys.path.insert(0, str(ROOT / "tests"))
    from support import sdks

    python = sdks.python_sdk()
    everything = sdks.node_packages()
    script = everything.path("@modelcontextprotocol/server-everything", "dist", "index.js")
    return (
        Server(
            "Python SDK",
            (str(python), str(sdks.HERE / "python_echo_server.py")),
            "text",
            f"`mcp` {sdks.PYTHON_SDK}, with the echo tool of `tests/interop/python_echo_server.py`",
        ),
        Server(
            "TypeScript server",
            (everything.node.node, str(script), "stdio"),
            "message",
            f"`@modelcontextprotocol/server-everything` {sdks.REFERENCE_SERVERS}"
            f" on `@modelcontextprotocol/sdk` {sdks.TYPESCRIPT_SDK}; its echo tool takes `message`",
        ),
    )


def main() -> None:
    """Compare, and write the page."""
    servers = (portbook(), *official_servers())
    PAGE.write_text(page(servers, observe_all(servers)), "utf-8")
    sys.stderr.write(f"portbook: wrote {PAGE.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
