"""`CommandGroup`: verbs of one command; a misspelt verb is answered with the nearest one."""

from __future__ import annotations

import click

from portbook.text.did_you_mean import did_you_mean

__all__ = ["CommandGroup"]


class CommandGroup(click.Group):
    """A group that suggests a verb where there is none of that name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb that the first argument names; a usage error has the nearest one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            hint = did_you_mean(name, known, f"`{ctx.command_path} --help` lists the commands")
            raise click.UsageError(f"there is no command {name[:80]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)
