"""`portbook completion`: a script that completes commands, options and names of tools in a shell."""

from __future__ import annotations

import contextlib
from typing import Final

import click

from portbook.cli.options import START_ERRORS, settings_from
from portbook.cli.output_and_errors import claim_stdout

__all__ = ["command", "tool_candidates"]

_SHELLS: Final = ("bash", "zsh", "fish")
_VARIABLE: Final = "_PORTBOOK_COMPLETE"
# The backspace makes click keep the lines of its paragraph.
_HELP: Final = """\
Print the completion script of a shell: commands, options, and the names of the tools that are served.

\b
bash: eval "$(portbook completion bash)" in ~/.bashrc
zsh:  eval "$(portbook completion zsh)" in ~/.zshrc
fish: portbook completion fish > ~/.config/fish/completions/portbook.fish
"""


@click.command("completion", help=_HELP)
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class  # late: only here

    out = claim_stdout()
    made = get_completion_class(shell)
    assert made is not None
    root = click.get_current_context().find_root().command
    click.echo(made(root, {}, "portbook", _VARIABLE).source(), out)


def tool_candidates(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of tools for a shell to complete; none where the settings cannot be used."""
    from portbook.app.explain_and_dry_run import dry_run  # late: only where a shell asks

    with contextlib.suppress(*START_ERRORS, OSError):
        dry = dry_run(settings_from(context.params.get("config")))
        return [name for name in dry.names() if name.startswith(incomplete)]
    return []
