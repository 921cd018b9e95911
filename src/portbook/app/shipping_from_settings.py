"""Settings to what ships records."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from portbook.settings import Settings

if TYPE_CHECKING:
    from portbook.app.shipping_task import ShippingTask
    from portbook.audit.shipping.ship_target import ShipTarget

__all__ = ["ship_target_of", "shipping_of"]


def ship_target_of(settings: Settings, environ: Mapping[str, str]) -> ShipTarget | None:
    """Return where records are shipped to, or None where they are not.

    Raises `BadSettings` where they cannot be shipped as the settings say.
    """
    given = {"ship_to": settings.ship_to, "ship_ca": settings.ship_ca}
    given["ship_authorization"] = settings.ship_authorization
    if settings.ship is None:
        for name, value in given.items():
            if value is not None:
                raise settings.complain(("audit", name), "has no effect without audit.ship")
        return None
    if settings.ship_to is None:
        raise settings.complain(("audit", "ship"), "needs audit.ship_to, the address of the receiver")
    variable = settings.ship_authorization
    if variable is not None and settings.ship != "otlp":
        raise settings.complain(("audit", "ship_authorization"), "has no effect: syslog has no such header")
    if variable is not None and not _is_header(environ.get(variable, "")):
        raise settings.complain(
            ("audit", "ship_authorization"), "names a variable that is not set, or not to one line of text"
        )
    # Late: only where records are shipped.
    from portbook.audit.shipping.ship_target import BadTarget, otlp_target, syslog_target

    try:
        return (otlp_target if settings.ship == "otlp" else syslog_target)(settings.ship_to)
    except BadTarget as error:
        raise settings.complain(("audit", "ship_to"), f"is no such address; {error}") from None


def shipping_of(
    settings: Settings, environ: Mapping[str, str], warn: Callable[[str], None]
) -> ShippingTask | None:
    """Return what ships the records, or None where they are not shipped.

    Raises `BadSettings` where they cannot be shipped as the settings say.
    """
    target = ship_target_of(settings, environ)
    if target is None:
        return None
    # Late: only where records are shipped.
    from portbook.app.shipping_task import ShippingTask
    from portbook.audit.shipping.ship_target import OtlpTarget

    if isinstance(target, OtlpTarget):
        from portbook.audit.shipping.otlp_receiver import OtlpReceiver

        variable = settings.ship_authorization
        receiver = OtlpReceiver(
            target, ca_file=settings.ship_ca, authorization=environ[variable] if variable else None
        )
    else:
        from portbook.audit.shipping.syslog_receiver import SyslogReceiver

        receiver = SyslogReceiver(target, settings.ship_ca)
    digest = hashlib.sha256(str(settings.ship_to).encode()).hexdigest()
    return ShippingTask(settings.log_dir, receiver, f"{settings.ship}-{digest[:16]}", warn)


def _is_header(value: str) -> bool:
    return bool(value) and value.isprintable() and value.isascii()
