"""Options that several verbs share, and settings made from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from portbook.schema.official_schemas import BrokenSchema
from portbook.settings import BadSettings, Settings, load_settings
from portbook.stores.connection_clock_and_errors import BadLock
from portbook.text.stand_ins import late_module
from portbook.tools.contract_registry import BadBundle
from portbook.tools.spec import BadTool

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem
else:
    click = late_module("click")  # a plain line of `serve` is read without it

__all__ = [
    "START_ERRORS",
    "common_options",
    "config_option",
    "debug_option",
    "json_option",
    "log_dir_option",
    "settings_from",
    "toolset_option",
    "toolsets_argument",
]

_F = TypeVar("_F", bound=Callable[..., Any])

# What can be wrong with what an operator wrote; each explains itself.
START_ERRORS: Final = (BadSettings, BadTool, BadBundle, BadLock, BrokenSchema)

# The option that sets a setting, by the key of the setting: messages name what a person has typed.
_OPTIONS: Final = {
    "assets.schemas": "--schemas",
    "audit.log_dir": "--log-dir",
    "ids.deterministic": "--deterministic-ids",
    "schema_override_uri": "--schema-override",
    "server.host": "--host",
    "server.port": "--port",
    "server.workers": "--workers",
}


def json_option(help_text: str = "Print JSON, even on a terminal.") -> Callable[[_F], _F]:
    """Add the option that prints data instead of words."""
    return click.option("--json", "is_json", is_flag=True, help=help_text)


def debug_option(function: _F) -> _F:
    """Add the option that prints the exceptions of tools."""
    return click.option(
        "--debug",
        is_flag=True,
        help="Print tracebacks of tools to standard error. For development: they may hold secrets.",
    )(function)


def config_option(function: _F) -> _F:
    """Add the option that names the settings file."""
    return click.option(
        "--config",
        type=_path("file"),
        help="Settings file.  [default: portbook.toml, if it exists]",
    )(function)


def log_dir_option(help_text: str) -> Callable[[_F], _F]:
    """Add the option that names the folder of records."""
    return click.option("--log-dir", type=_path("folder"), help=help_text)


def _path(kind: Literal["file", "folder"]) -> click.Path:
    """Return the type of an option that names a file or a folder: click takes no name for this folder."""

    class NamedPath(click.Path):
        def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
            if value == "":
                self.fail(f"it is empty; name a {kind}", param, ctx)
            return super().convert(value, param, ctx)

    return NamedPath(path_type=Path, file_okay=kind == "file", dir_okay=kind == "folder")


def toolset_option(function: _F) -> _F:
    """Add the option that names toolsets to serve beside those of the settings."""
    return click.option(
        "--toolset",
        "toolsets",
        multiple=True,
        shell_complete=_files,
        help="Python file or module with a Toolset. Repeatable.",
    )(function)


def toolsets_argument(function: _F) -> _F:
    """Add the arguments that name toolsets to serve beside those of the settings."""
    return click.argument("toolsets", nargs=-1, shell_complete=_files)(function)


def _files(_: click.Context, __: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Let a shell complete names of files: most toolsets are one."""
    from click.shell_completion import CompletionItem  # late: only where a shell asks

    return [CompletionItem(incomplete, type="file")]


def common_options(function: _F) -> _F:
    """Add the options of every verb that runs calls."""
    for option in (
        click.option(
            "--deterministic-ids",
            is_flag=True,
            default=None,
            help="Derive request, trace and span ids from the content alone.",
        ),
        log_dir_option("Folder for records.  [default: runs]"),
        config_option,
    ):
        function = option(function)
    return function


def settings_from(
    config: Path | None,
    log_dir: Path | None = None,
    deterministic_ids: bool | None = None,
    *,
    toolsets: tuple[str, ...] = (),
    debug: bool = False,
    flags: Mapping[str, Any] | None = None,
) -> Settings:
    """Return the settings in force, with the toolsets and the tracebacks that the command line adds.

    `flags` are the values of further options, by the key of their setting.

    Raises `BadSettings` for what cannot be used.
    """
    given = {"audit.log_dir": log_dir, "ids.deterministic": deterministic_ids, **(flags or {})}
    settings = load_settings(config, os.environ, given, Path.cwd(), _origin_of_flag)
    return settings._replace(more_toolsets=toolsets, tracebacks=debug or settings.tracebacks)


def _origin_of_flag(key: str) -> str:
    return _OPTIONS.get(key, "command line")
