"""`portbook export`: what the MCP registry, a desktop bundle and a client's configuration need."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import click

from portbook.app.explain_and_dry_run import DryRun, dry_run
from portbook.cli.exit_codes import ExitCode
from portbook.cli.export_bundle import MadeBundle, make_bundle
from portbook.cli.main import CommandGroup
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from, toolsets_argument
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, print_json, say, stop_with
from portbook.exports.client_entry_and_variables import (
    ConnectedServer,
    NeededSecrets,
    NotForClient,
    StartedServer,
    entry_for,
    needed_secrets,
)
from portbook.exports.client_table import CLIENTS
from portbook.exports.registry_entry import (
    BadBundleFile,
    BadEntry,
    PublishedBundle,
    PyPIPackage,
    RegistryEntry,
    Remote,
)
from portbook.settings import Settings
from portbook.text.did_you_mean import did_you_mean
from portbook.version import __version__

__all__ = ["command"]


@click.group("export", cls=CommandGroup)
def command() -> None:
    """Write what others need to find, install and start these tools."""


@command.command("server.json", short_help="Print the entry for the MCP registry.")
@toolsets_argument
@click.option("--name", required=True, help="Name in the registry: io.github.you/greetings.")
@click.option("--description", required=True, help="What the tools do, in at most 100 characters.")
@click.option("--version", help="Version of this release.  [default: server.version, or the bundle's]")
@click.option("--repository", metavar="URL", help="Address of the source code.")
@click.option("--pypi", metavar="PACKAGE", help="Package on PyPI whose modules TOOLSETS are.")
@click.option("--bundle", type=click.Path(path_type=Path, dir_okay=False), help="Bundle of `export mcpb`.")
@click.option("--bundle-url", metavar="URL", help="Where people download that bundle.")
@click.option("--remote", metavar="URL", help="Address of a server that runs: https://…/mcp.")
@click.option("--key", "has_key", is_flag=True, help="Say that the server at --remote needs a key.")
@json_option("Print errors as JSON, too.")
@config_option
def server_json(
    toolsets: tuple[str, ...],
    *,
    name: str,
    description: str,
    version: str | None,
    repository: str | None,
    pypi: str | None,
    bundle: Path | None,
    bundle_url: str | None,
    remote: str | None,
    has_key: bool,
    is_json: bool,
    config: Path | None,
) -> None:
    """Print server.json, the entry of these tools in the MCP registry.

    TOOLSETS are the modules that the package of --pypi serves; its command must have the name of the package
    and be Portbook's: [project.scripts] greetings = "portbook.cli.main:main".
    """
    out = claim_stdout()
    if (bundle is None) != (bundle_url is None):
        raise fail("--bundle and --bundle-url go together", ExitCode.INVALID)
    if has_key and remote is None:
        raise fail("--key goes with --remote", ExitCode.INVALID)
    try:
        settings = _settings(config, () if pypi is not None else toolsets)
        published = None
        if bundle is not None and bundle_url is not None:
            published = PublishedBundle.of(bundle_url, bundle.read_bytes())
        document = RegistryEntry(
            name=name,
            title=settings.server_title,
            description=description,
            version=version or settings.server_version or (published.version if published else __version__),
            repository=repository,
            pypi=None if pypi is None else PyPIPackage(pypi, toolsets),
            bundle=published,
            remote=None if remote is None else Remote(remote, has_key),
            variables=_secrets(settings).variables,
        ).document()
    except (*START_ERRORS, OSError, BadBundleFile, BadEntry) as error:
        raise stop_with(error) from None
    click.echo(json.dumps(document, indent=2, ensure_ascii=False), out)
    if pypi is not None:
        say(f"note: the registry wants this line in the README of {pypi}: mcp-name: {name}")


@command.command("mcpb", short_help="Write a desktop bundle (.mcpb).")
@toolsets_argument
@click.option("--author", required=True, help="Who publishes the bundle.")
@click.option("--name", help="Name of the bundle.  [default: server.name, or that of the toolset]")
@click.option("--description", help="What the tools do.  [default: server.instructions, or their names]")
@click.option("--version", help="Version of the bundle.  [default: server.version of the settings]")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="[default: NAME.mcpb]")
@click.option(
    "--include",
    type=click.Path(path_type=Path),
    multiple=True,
    help="File or folder that the toolsets read. Repeatable.",
)
@click.option(
    "--wheel",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Wheel of Portbook to carry along, for machines that do not get it from an index.",
)
@json_option()
@config_option
def mcpb(
    toolsets: tuple[str, ...],
    *,
    author: str,
    name: str | None,
    description: str | None,
    version: str | None,
    output: Path | None,
    include: tuple[Path, ...],
    wheel: Path | None,
    is_json: bool,
    config: Path | None,
) -> None:
    """Write a desktop bundle (.mcpb): one file that desktop clients install, with settings and toolsets.

    The same files give the same bytes. A bundle that could not serve without the rest of this machine is
    refused, and so are files with secrets: the person who installs it is asked for the variables.
    """
    out = claim_stdout()
    try:
        settings = _settings(config, toolsets)
        dry = dry_run(settings)
        named = name or _name(settings)
        secrets = _secrets(settings)
        wanted = MadeBundle(
            name=named,
            author=author,
            description=description or settings.server_instructions or _described(dry),
            version=version or settings.server_version or __version__,
            wheel=wheel,
            include=include,
            secrets=secrets,
        )
        path = output or Path(f"{named}.mcpb")
        data, files = make_bundle(settings, dry.catalog, wanted)
        path.write_bytes(data)
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None
    digest = hashlib.sha256(data).hexdigest()
    words = [f"{path}: {len(data):,} bytes, sha256 {digest}", *(f"  {each}" for each in files)]
    told: dict[str, Any] = {"bundle": str(path), "bytes": len(data), "sha256": digest, "files": files}
    print_data(told, words, out, is_json=is_json)


def _clients_that_begin(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of clients for a shell to complete."""
    return [client.name for client in CLIENTS if client.name.startswith(incomplete)]


@command.command("client", short_help="Print the entry for a client's configuration.")
@click.argument("client", required=False, shell_complete=_clients_that_begin)
@toolsets_argument
@click.option("--name", help="Name of the server in the client.  [default: server.name, or the toolset]")
@click.option("--url", metavar="URL", help="Connect to a server that runs, instead of starting one.")
@click.option("--key", "has_key", is_flag=True, help="Send the key in PORTBOOK_KEY to the server at --url.")
@json_option("Print JSON, whatever the client's form is; errors too.")
@config_option
def client(
    client: str | None,
    toolsets: tuple[str, ...],
    *,
    name: str | None,
    url: str | None,
    has_key: bool,
    is_json: bool,
    config: Path | None,
) -> None:
    """Print the entry of this server for the configuration of CLIENT; without CLIENT, list the clients.

    Nothing is written. The entry starts this Portbook with absolute paths, and holds no secret.
    """
    out = claim_stdout()
    known = {each.name: each for each in CLIENTS}
    if client is None:
        listed = [{"client": each.name, "title": each.title, "file": each.shown_file} for each in CLIENTS]
        width = max(map(len, known))
        words = [f"{each.name.ljust(width)}  {each.title}: {each.shown_file}" for each in CLIENTS]
        print_data({"clients": listed}, words, out, is_json=is_json)
        return
    row = known.get(client)
    if row is None:
        hint = did_you_mean(client, list(known), "`portbook export client` lists them")
        raise fail(f"there is no client {client[:80]!r}; {hint}", ExitCode.INVALID)
    if has_key and url is None:
        raise fail("--key goes with --url", ExitCode.INVALID)
    try:
        if url is None:
            settings = _settings(config, tuple(_absolute(each) for each in toolsets))
            dry_run(settings)
            server = StartedServer(name or _name(settings), _command(settings), _secrets(settings).variables)
        else:
            server = ConnectedServer(name or _name(_settings(config, toolsets)), url, has_key)
        entry = entry_for(row, server)
    except (*START_ERRORS, OSError, NotForClient) as error:
        raise stop_with(error) from None
    if is_json:
        print_json(entry.document, out)
    else:
        click.echo(entry.text, out, nl=False)
    say(f"for {row.shown_file} of {row.title}")
    if entry.left_to_person:
        say(f"{row.title} must have these variables in its environment: {', '.join(entry.left_to_person)}")


def _settings(config: Path | None, toolsets: tuple[str, ...]) -> Settings:
    """Return the settings with absolute paths: what is exported starts in a folder of others' choice."""
    settings = settings_from(None if config is None else config.resolve(), toolsets=toolsets)
    return settings if settings.config is None else settings._replace(config=settings.config.resolve())


def _absolute(toolset: str) -> str:
    return str(Path(toolset).resolve()) if toolset.endswith(".py") else toolset


def _secrets(settings: Settings) -> NeededSecrets:
    return needed_secrets({"http": settings.http_tables, "mcp": settings.mcp_tables})


def _name(settings: Settings) -> str:
    """Return what the server is called: the operator's name for it, or the name of its first toolset."""
    toolsets = (*settings.more_toolsets, *settings.toolsets)
    if "server.name" in settings.origins or settings.server_name != "portbook" or not toolsets:
        return settings.server_name
    return Path(toolsets[0]).stem.rpartition(".")[2].replace("_", "-")


def _described(dry: DryRun) -> str:
    names = dry.names()
    return f"Tools: {', '.join(names[:8])}{' and more' if len(names) > 8 else ''}."


def _command(settings: Settings) -> list[str]:
    program = Path(sys.executable).with_name("portbook")
    start = [str(program)] if program.is_file() else [sys.executable, "-m", "portbook"]
    config = [] if settings.config is None else ["--config", str(settings.config)]
    # A relative folder would start wherever the client does.
    log_dir = [] if settings.log_dir.is_absolute() else ["--log-dir", str(settings.log_dir.resolve())]
    return [*start, "serve", "--stdio", *config, *log_dir, *settings.more_toolsets]
