"""SIGHUP: read the settings file again, and put its rules into force."""

from __future__ import annotations

from collections.abc import Callable

from portbook.app.running_app import App
from portbook.cli.options import START_ERRORS
from portbook.cli.output_and_errors import problems_of, say
from portbook.settings import CONFIG_NAME, BadSettings, Settings

__all__ = ["reload_rules"]


def reload_rules(
    app: App, load: Callable[[], Settings], reload_certificate: Callable[[], None] | None = None
) -> None:
    """Put the rules of the changed settings file into force, or keep the old ones if it cannot be used.

    So for the certificate of the server, if it has one.
    """
    if reload_certificate is not None:
        try:
            reload_certificate()
        except ValueError as error:
            say(f"error: {error}")
            say("the old certificate stays in use")
    try:
        settings = load()
        if settings.config is None or not settings.is_given:
            raise BadSettings(f"{settings.config or CONFIG_NAME}: holds no settings")
        doubts = app.govern(settings)
    except (*START_ERRORS, OSError) as error:
        for problem in problems_of(error):
            say(f"error: {problem}")
        say("reload failed; the old rules stay in force")
    else:
        for doubt in doubts:
            say(f"warning: {doubt}")
        say("reloaded policy, keys and redaction; restart to change tools")
