# ruff: noqa: INP001 - a script beside the pages that it writes, not a package
"""Write the reference pages that are made from the code: commands, settings, reasons, the Python interface.

`pages()` renders them without touching a file, so that a test can tell whether what is there is stale.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import click

import portbook
import portbook.testing
from portbook.cli.exit_codes import ExitCode
from portbook.cli.main import cli
from portbook.errors import REASONS, CanonicalError, Reason, Row
from portbook.settings import CONFIG_NAME, SETTINGS, Setting
from portbook.testing import client, fake_http_api, questions_and_answers
from portbook.testing.client import BaseTestClient, TestClient
from portbook.tools.content_blocks import Content
from portbook.tools.questions import Answered, Question, Sampled

REFERENCE: Final = Path(__file__).resolve().parent.parent / "docs" / "reference"

_NOTICE: Final = "<!-- Generated. Do not edit: change the code, then run scripts/generate-docs. -->\n"

# Settings that a flag sets; a flag that no command has stops the generation.
_FLAGS: Final = {
    "schema_override_uri": "--schema-override",
    "server.host": "--host",
    "server.port": "--port",
    "server.workers": "--workers",
    "audit.log_dir": "--log-dir",
    "ids.deterministic": "--deterministic-ids",
    "python.toolsets": "TOOLSETS",
    "assets.schemas": "--schemas",
}

_TYPES: Final = {
    "text": "string",
    "path": "path",
    "whole": "whole number",
    "count": "whole number or auto",
    "switch": "true or false",
    "texts": "list of strings",
    "keys": "list of tables",
    "address": "path or address",
    "table": "table",
    "tables": "list of tables",
    "certificate": "table of two files",
}

# What to show for settings that have no default and are not plain paths.
_SAMPLES: Final = {
    "server.title": '"Orders"',
    "server.tls": '{ cert = "cert.pem", key = "key.pem" }',
    "server.version": '"1.2.0"',
    "server.instructions": '"Look an order up before you refund it."',
    "keys.required": "true",
    "docs.enabled": "true",
    "assets.enabled": "true",
    "assets.backend_url": '"http://127.0.0.1:9000"',
    "policy.allowed_domains": '["api.example.com", "127.0.0.1:9000", "*.example.net"]',
    "policy.allowed_methods": '["GET", "POST"]',
    "policy.effects": '["read"]',
    "policy.max_payload_bytes": "65536",
    "policy.max_execution_timeout_ms": "5000",
    "policy.max_attempts": "3",
    "policy.max_calls_per_minute": "600",
    "policy.rate": '"exact"',
    "audit.ship": '"syslog"',
    "audit.ship_to": '"tcp://127.0.0.1:601"',
    "audit.ship_authorization": '"SHIP_TOKEN"',
    "store.url": '"postgresql://portbook@127.0.0.1/portbook"',
    "store.direct_url": '"postgresql://portbook@127.0.0.1:5432/portbook"',
    "schema_override_uri": '"path/to/schema.json"',
    "schema_override_sha256": '"…"',
}

# Settings that are tables of their own.
_TABLES: Final = {
    "keys": ("[[keys.allow]]", 'name = "ada"', 'sha256 = "…"', 'tools = ["orders.*"]'),
    "tables": (
        "[[policy.rules]]",
        'name = "large refunds need a person"',
        'tools = ["refund"]',
        'action = "ask"',
        'where = { "/cents" = { minimum = 10000 } }',
    ),
    "http": ("[http.orders]", 'base_url = "http://127.0.0.1:9000"'),
    "mcp": ("[mcp.github]", 'command = ["npx", "-y", "@example/server"]'),
}

# Read before there are settings, or not a setting at all.
_OTHER_VARIABLES: Final = {
    "PORTBOOK_CONFIG": f"The settings file, where it is not `{CONFIG_NAME}` in the current folder.",
    "PORTBOOK_KEY": "The key of the caller, for `portbook serve --stdio` and `portbook call`.",
    "PORTBOOK_SERVERS_BEFORE": (
        "Set by Portbook for the MCP servers behind it: how many Portbooks stand before them, 4 at most."
    ),
    "PORTBOOK_OPERATOR_KEY": "The operator key. It decides approvals over HTTP; it cannot call tools.",
    "APIM_BASE_URL": "The base URL of every HTTP API that does not name its own.",
    "MCP_ENDPOINT": "The door of [`python -m mcp`](assets.md#python--m-mcp): `MCP_SOCKET_PATH`, `MCP_HOST` "
    "and `MCP_PORT` say where it is.",
    "MCP_READY_FILE": "The file that is there while `python -m mcp` serves.",
}


def pages() -> dict[Path, str]:
    """Return every generated page by its path."""
    made = {"cli.md": _cli(), "settings.md": _settings(), "reasons.md": _reasons(), "python.md": _python()}
    return {REFERENCE / name: _NOTICE + "\n" + "\n".join(lines) + "\n" for name, lines in made.items()}


# -- commands


def commands(context: click.Context | None = None) -> Iterator[click.Context]:
    """Yield the context of the program itself and of each of its verbs, at any depth."""
    context = context or click.Context(cli, info_name="portbook", **cli.context_settings)
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from commands(click.Context(command, info_name=name, parent=context))


def _cli() -> list[str]:
    lines = [
        "# Command line",
        "",
        "Data goes to standard output, everything for people to standard error.",
    ]
    for context in commands():
        usage = " ".join(context.command.collect_usage_pieces(context))
        lines += ["", f"## {context.command_path}", "", "```", f"{context.command_path} {usage}", "```", ""]
        lines += _paragraphs(context.command.help or "")
        if isinstance(context.command, click.Group):
            group = context.command
            lines += ["| command | |", "| --- | --- |"]
            for name in group.list_commands(context):
                command = group.get_command(context, name)
                assert command is not None
                anchor = re.sub(r"[^\w-]", "", f"{context.command_path} {name}".replace(" ", "-"))
                lines.append(f"| [`{name}`](#{anchor}) | {_cell(command.get_short_help_str(200))} |")
            lines.append("")
        lines += ["| option | |", "| --- | --- |"]
        for parameter in context.command.get_params(context):
            record = parameter.get_help_record(context)
            if record is not None and record[1]:  # an argument has its words in the text above
                lines.append(f"| `{_cell(record[0])}` | {_cell(record[1])} |")
    lines += ["", "## Exit codes", "", "| code | |", "| --- | --- |"]
    lines += [f"| `{code.value}` | {_cell(code.meaning)} |" for code in ExitCode]
    lines += [
        "",
        "`portbook wrap` exits with the code of its program, or 128 plus the number of the signal that ended",
        "it.",
    ]
    return lines


def _paragraphs(text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        kept = paragraph.removeprefix("\b\n")  # what click prints line by line
        lines += ["```", kept, "```", ""] if kept != paragraph else [" ".join(paragraph.split()), ""]
    return lines


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


# -- settings


def _settings() -> list[str]:
    _require_flags()
    lines = [
        "# Settings",
        "",
        "Where one setting is given in several places, the first of these wins:",
        "",
        "1. a flag on the command line,",
        "2. its environment variable,",
        f"3. `{CONFIG_NAME}`,",
        "4. its default.",
        "",
        f"`{CONFIG_NAME}` is read from the current folder; `--config` or `PORTBOOK_CONFIG` names a different",
        "file. A relative path in the file starts in the folder of the file. An unknown setting or a value",
        "of the wrong type stops the start; the message names it and suggests a fix.",
        "",
        "## All of them",
        "",
        "| setting | type | default | variable | flag |",
        "| --- | --- | --- | --- | --- |",
    ]
    for setting in SETTINGS:
        variable = f"`{setting.env}`" if setting.env else ""
        flag = f"`{_FLAGS[setting.key]}`" if setting.key in _FLAGS else ""
        anchor = re.sub(r"[^\w-]", "", setting.key)
        link, kind = f"[`{setting.key}`](#{anchor})", _type(setting)
        lines.append(f"| {link} | {kind} | {_default(setting)} | {variable} | {flag} |")
    for setting in SETTINGS:
        lines += ["", f"### {setting.key}", "", setting.meaning]
        if setting.kind == "whole":
            has_maximum = setting.maximum != Setting._field_defaults["maximum"]
            upper = (
                f"from {setting.minimum} to {setting.maximum}"
                if has_maximum
                else f"{setting.minimum} or more"
            )
            lines[-1] += f" A whole number, {upper}."
        elif setting.kind == "count":
            lines[-1] += f" A whole number, from {setting.minimum} to {setting.maximum}, or auto."
    lines += [
        "",
        "## A file with every setting",
        "",
        "Each at its default. Those without a default are commented out.",
        "",
        "```toml",
        *_toml(),
        "```",
        "",
        "## Variables that are not settings",
        "",
        "| variable | |",
        "| --- | --- |",
        *(f"| `{name}` | {meaning} |" for name, meaning in _OTHER_VARIABLES.items()),
    ]
    return lines


def _type(setting: Setting) -> str:
    return " or ".join(setting.choices) if setting.kind == "choice" else _TYPES[setting.kind]


def _require_flags() -> None:
    known = {
        name
        for context in commands()
        for parameter in context.command.params
        for name in (*parameter.opts, (parameter.name or "").upper())
    }
    missing = {flag for flag in _FLAGS.values() if flag not in known}
    assert not missing, f"no command has {missing}"
    assert not _FLAGS.keys() - {setting.key for setting in SETTINGS}


def _default(setting: Setting) -> str:
    return "none" if setting.default is None else f"`{_value(setting)}`"


def _value(setting: Setting) -> str:
    value: Any = setting.default
    if isinstance(value, tuple | dict):
        return "[]" if isinstance(value, tuple) else "{}"
    return json.dumps(str(value) if setting.kind in ("path", "text") else value)


def _toml() -> Iterator[str]:
    section = ""  # what stands before the first section belongs to none
    for setting in SETTINGS:
        head, _, name = setting.key.rpartition(".")
        sample_table = _TABLES.get(setting.key) or _TABLES.get(setting.kind)
        if sample_table is not None:
            yield from ("", *(f"# {line}" for line in sample_table))
            continue
        if head != section:
            yield from ("", f"[{head}]")
            section = head
        if setting.default is None:
            sample = _SAMPLES.get(setting.key, f'"path/to/{name}"')
            yield f"# {name} = {sample}"
        else:
            yield f"{name} = {_value(setting)}"


# -- reasons


def _reasons() -> list[str]:
    lines = [
        "# Reasons",
        "",
        "Why a call ended without a result. Each reason has one row in one table of the code, which says",
        "what every contract makes of it.",
        "",
        "## The five codes of the envelope contract",
        "",
        "| code | JSON-RPC code | message | HTTP status |",
        "| --- | --- | --- | --- |",
    ]
    for code in CanonicalError.codes():
        error = CanonicalError.to_jsonrpc_error(code)
        lines.append(
            f"| `{code}` | {error['code']} | {error['message']} | {CanonicalError.to_http_status(code)} |"
        )
    lines += [
        "",
        "A reason may have an HTTP status that says more than its code's.",
        "",
        "## All reasons",
        "",
        "In the order of the path. The record has the reason in `error.reason` and its code in `error.code`.",
        "From `read` on, the answer has the code too; before that, nothing is known of the message yet, and",
        "the answer is JSON-RPC's own. The last column is how a call of an [asset tool](assets.md#messages)",
        "by its name ends: `reason` and what it says beside it; where it is empty, as JSON-RPC does.",
        "",
        "| reason | stage | envelope | `data.reason` | MCP | REST | HTTP | exit | asset tools |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for reason, row in REASONS.items():
        detail = f"`{row.canonical.reason}`" if row.canonical.reason else ""
        link = f"[`{reason}`](#{reason.lower()})"
        bare = f"`{row.bare.reason}`: {row.bare.detail}" if row.bare else ""
        cells = (
            link, row.stage, f"`{row.canonical.code}`", detail, row.mcp.code, f"`{row.rest}`", row.http,
            row.exit, bare,
        )  # fmt: skip
        lines.append(f"| {' | '.join(str(cell) for cell in cells)} |")
    for reason, row in REASONS.items():
        unless = [f"Where nothing ran, it ends: {row.if_not_executed}", ""] if row.if_not_executed else []
        if row.if_effects:
            unless = [f"Unless the tool only reads, it also says: {row.if_effects}", ""]
        lines += ["", f"### {reason}", "", row.sentence, "", *unless, *_told(reason, row)]
    return lines


def _since(row: Row) -> str:
    if not row.to_model_since:
        return "."
    return f"; to `tools/call`, from {row.to_model_since} on, a result with `isError` instead."


def _told(reason: Reason, row: Row) -> list[str]:
    error: dict[str, Any] = dict(CanonicalError.to_jsonrpc_error(row.canonical.code))
    if row.canonical.reason:
        error["data"]["reason"] = row.canonical.reason
    inside = json.dumps(error, separators=(",", ":"))
    outside = json.dumps({"code": row.mcp.code, "message": row.mcp.message}, separators=(",", ":"))
    lines = [f"- Answer to an envelope: `{inside}`"]
    if reason is Reason.FRAME_TOO_LARGE:
        lines = ["- Answer: a result that says `payload_too_large`; see [Envelope](envelope.md#size)."]
    elif row.stage in ("frame", "parse", "classify"):
        lines = [f"- Answer: `{outside}`{_since(row) if row.to_model_since else ''}"]
    else:
        lines.append(f"- Answer to an MCP message: `{outside}`{_since(row)}")
    retry = "retryable" if row.is_retryable else "not retryable"
    lines.append(f"- Answer at `/execute`: `{row.rest}`, {retry}.")
    return [*lines, f"- HTTP status {row.http}; `portbook call` exits with {row.exit}."]


# -- the Python interface

# What `import portbook` offers, by what it is for; every name stands in one of these.
_GROUPS: Final = {
    "Declare": ("Toolset",),
    "Serve inside an application": ("MountedApp",),
    "Talk to the caller": ("Context",),
    "Ask several things at once": ("Form", "OpenPage", "Sample", "Roots"),
    "Return content": (
        "Content", "Text", "Image", "Audio", "Embedded", "ResourceLink", "Blob", "Message",
    ),
    "Fail": ("ToolError", "NotFound", "Failed", "BadTool"),
    "Make and read result envelopes": (
        "enclose", "wrap", "unwrap", "failure", "inspect_envelope", "Controls", "Subject", "Problem",
        "Failure", "SigningKey", "PublicKey", "NotAnEnvelope", "ToolFailed", "NotJSON", "BadKey",
    ),
    "Schemas and codes": ("SchemaRegistry", "BadBundle", "CanonicalError"),
}  # fmt: skip

# What `import portbook.testing` offers, in the same way.
_TESTING_GROUPS: Final = {
    "Test tools": ("TestClient", "AsyncTestClient", "FixedClock", "BadSettings"),
    "See how a call ended": ("CallResult", "NoResult", "Violation", "Progress", "LogMessage"),
    "Decide approvals": ("Approval", "Decided", "Undecidable"),
    "Answer for people, models and APIs": ("Inquiry", "Answers", "ApiRequest", "ApiResponse", "Upstream"),
}

# What questions return; tools do not make them.
_ANSWERS: Final = {"Context": (Answered, Sampled)}

# What a test is handed, in the same way.
_HANDED_OUT: Final = tuple(
    getattr(portbook.testing, name)
    for names in _TESTING_GROUPS.values()
    for name in names
    if name not in ("TestClient", "AsyncTestClient", "ApiResponse", "Violation")
)

# Aliases of types, and the modules that define them.
_ALIASES: Final = {"Answers": questions_and_answers, "Decided": client, "Upstream": fake_http_api}

# Classes whose methods have sections of their own, and methods that decorate.
_SECTIONED: Final = ("Toolset", "Context", "TestClient")
_DECORATORS: Final = ("Toolset.tool", "Toolset.resource", "Toolset.prompt")


def _python() -> list[str]:
    listed = {name for names in _GROUPS.values() for name in names}
    assert listed == set(portbook.__all__) - {"__version__"}, listed ^ set(portbook.__all__)
    tested = {name for names in _TESTING_GROUPS.values() for name in names}
    assert tested == set(portbook.testing.__all__), tested ^ set(portbook.testing.__all__)
    lines = [
        "# Python",
        "",
        "What `from portbook import …` and `from portbook.testing import …` offer, beside `__version__`,",
        "made from the docstrings of the code. The public API is `portbook.__all__` and",
        "`portbook.testing.__all__`. Everything else is internal and may move in any release.",
        "",
        "The how-tos show it at work: [Python functions](../how-to/expose-python-functions.md),",
        "[resources and prompts](../how-to/offer-resources-and-prompts.md),",
        "[questions](../how-to/ask-the-caller.md), [progress](../how-to/report-progress.md),",
        "[result envelopes](../how-to/give-results-provenance.md), and",
        "[tests of tools](../how-to/test-your-tools.md).",
    ]
    for module, groups in ((portbook, _GROUPS), (portbook.testing, _TESTING_GROUPS)):
        for title, names in groups.items():
            lines += ["", f"## {title}"]
            for name in names:
                lines += _described(name, getattr(module, name))
                for answer in _ANSWERS.get(name, ()):
                    lines += _described(answer.__name__, answer)
    return [line for line, after in pairwise([*lines, ""]) if line or after]


def _described(name: str, made: Any) -> list[str]:
    if name in _ALIASES:
        return ["", f"### {name}", "", *_alias(name)]
    if not inspect.isclass(made):
        return ["", f"### {name}", "", *_code(f"{name}{_signature(made)}"), "", *_words(made)]
    lines = ["", f"### {name}", ""]
    is_made = not issubclass(made, Exception) and made not in (Content, *_ANSWERS["Context"], *_HANDED_OUT)
    if is_made and inspect.signature(made).parameters:
        lines += [*_code(f"{name}{_signature(made, is_returning=False)}"), ""]
    lines += _words(made)
    lines += [f"- `{field}`: {words}" for field, words in _fields(made).items()]
    members = {} if issubclass(made, Content | Question) else dict(_members(made))
    if name not in _SECTIONED:
        return [*lines, *(_bullet(member, each) for member, each in members.items())]
    for member, each in members.items():
        lines += ["", f"### {name}.{member}", "", *_code(_use(name, member, each)), "", *_words(each)]
    return lines


def _alias(name: str) -> list[str]:
    """Return what the code says of an alias of a type: its definition, and the text below it."""
    body = ast.parse(inspect.getsource(_ALIASES[name])).body
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            assert isinstance(after, ast.Expr)
            assert isinstance(after.value, ast.Constant)
            words = " ".join(str(after.value.value).split())
            return [*_code(f"{name} = {ast.unparse(node.value or after)}"), "", words]
    raise LookupError(name)


def _use(owner: str, member: str, each: Any) -> str:
    if isinstance(each, property):
        return f"{_instance(owner)}.{member}: {each.fget.__annotations__['return']}"
    if f"{owner}.{member}" in _DECORATORS:
        return f"@{_instance(owner)}.{member}{_signature(each, leave='function', is_returning=False)}"
    is_awaited = str(inspect.signature(each).return_annotation).startswith("Coroutine[")
    return f"{'await ' if is_awaited else ''}{_instance(owner)}.{member}{_signature(each)}"


def _instance(owner: str) -> str:
    return owner.removeprefix("Test").lower()


def _bullet(member: str, each: Any) -> str:
    called = member if isinstance(each, property) else f"{member}{_signature(each, is_wide=True)}"
    return f"- `{called}`: {' '.join(_words(each)).strip()}"


def _members(made: type) -> Iterator[tuple[str, Any]]:
    """Yield what a class has for its users, in the order of the code, what it inherits last."""
    homes = [made, BaseTestClient] if made is TestClient else [made]
    for name, each in (item for home in homes for item in vars(home).items()):
        is_function = isinstance(each, property | staticmethod | classmethod) or inspect.isfunction(each)
        if not name.startswith("_") and name not in ("as_json", "to_json") and is_function:
            yield name, each if isinstance(each, property) else getattr(made, name)


def _signature(made: Any, *, leave: str = "", is_returning: bool = True, is_wide: bool = False) -> str:
    signature = inspect.signature(made)
    parts: list[str] = []
    has_star = False
    by_place = [each.name for each in signature.parameters.values() if each.kind is each.POSITIONAL_ONLY]
    last_by_place = by_place[-1] if by_place else None
    for parameter in signature.parameters.values():
        if parameter.name in ("self", leave):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            has_star = True
            parts.append("*")
        mark = {parameter.VAR_KEYWORD: "**", parameter.VAR_POSITIONAL: "*"}.get(parameter.kind, "")
        has_star = has_star or mark == "*"
        written = f"{mark}{parameter.name}: {_annotation(parameter.annotation)}"
        if parameter.default is not parameter.empty:
            default = parameter.default
            shown = json.dumps(default) if isinstance(default, str) else repr(default)
            written += " = ..." if shown.startswith("<") else f" = {shown}"
        parts.append(written)
        if parameter.name == last_by_place:
            parts.append("/")
    returned = signature.return_annotation
    tail = f" -> {_annotation(returned)}" if is_returning and returned is not signature.empty else ""
    line = f"({', '.join(parts)}){tail}"
    if is_wide or len(line) < 90:
        return line
    return "(\n" + "".join(f"    {part},\n" for part in parts) + f"){tail}"


def _annotation(annotation: Any) -> str:
    written = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"(InitVar\[|Coroutine\[Any, Any, )(.*)\]$", r"\2", written).replace("'", '"')


def _fields(made: type) -> dict[str, str]:
    """Return what the code says of a class's attributes, in the text below each."""
    [body] = [
        node
        for node in ast.parse(textwrap.dedent(inspect.getsource(made))).body
        if isinstance(node, ast.ClassDef)
    ]
    found: dict[str, str] = {}
    for node, after in zip(body.body, body.body[1:], strict=False):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found[node.target.id] = " ".join(str(after.value.value).split()) if is_text else ""  # type: ignore[union-attr]
    return {name: words for name, words in found.items() if words}


def _words(made: Any) -> list[str]:
    lines: list[str] = []
    for paragraph in re.split(r"\n\s*\n", inspect.cleandoc(made.__doc__ or "")):
        is_code = paragraph.startswith("    ")
        lines += [*(_code(textwrap.dedent(paragraph)) if is_code else [" ".join(paragraph.split())]), ""]
    return lines


def _code(text: str) -> list[str]:
    return ["```python", text, "```"]


def main() -> None:
    """Write every page that is not up to date."""
    for path, text in pages().items():
        if not path.is_file() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
            click.echo(f"wrote {path.relative_to(REFERENCE.parent.parent)}", err=True)


if __name__ == "__main__":
    main()
