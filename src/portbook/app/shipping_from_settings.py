"""Settings to what ships records: the receiver that `[audit] ship` names, or what is wrong with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from portbook.audit.shipping.shipping_task import ShippingTask
from portbook.settings import Settings

if TYPE_CHECKING:
    from portbook.audit.shipping.receiver_and_address import RecordReceiver, ShipTarget
    from portbook.stores.store_port import StorePort

__all__ = ["ship_target_of", "shipping_of"]


def ship_target_of(settings: Settings, environ: Mapping[str, str]) -> ShipTarget | None:
    """Return the receiver that records are shipped to, or None where they go to none.

    Raises `BadSettings` where they cannot be shipped as the settings say.
    """
    given = {"ship_to": settings.ship_to, "ship_ca": settings.ship_ca}
    given["ship_authorization"] = settings.ship_authorization
    if settings.ship is None or settings.ship == "postgresql":
        for name, value in given.items():
            if value is not None:
                raise settings.complain(("audit", name), "has no effect without audit.ship to a receiver")
        if settings.ship == "postgresql" and settings.store_url is None:
            raise settings.complain(("audit", "ship"), "needs store.url, the address of the database")
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
    from portbook.audit.shipping.receiver_and_address import BadTarget, otlp_target, syslog_target

    try:
        return (otlp_target if settings.ship == "otlp" else syslog_target)(settings.ship_to)
    except BadTarget as error:
        raise settings.complain(("audit", "ship_to"), f"is no such address; {error}") from None


def shipping_of(
    settings: Settings, environ: Mapping[str, str], store: StorePort, warn: Callable[[str], None]
) -> ShippingTask | None:
    """Return what ships the records, or None where they are not shipped.

    Raises `BadSettings` where they cannot be shipped as the settings say.
    """
    if settings.ship is None:
        return None

    receiver = _receiver_of(settings, environ, store)
    digest = hashlib.sha256((settings.ship_to or store.place).encode()).hexdigest()
    return ShippingTask(settings.log_dir, receiver, f"{settings.ship}-{digest[:16]}", warn)


def _receiver_of(settings: Settings, environ: Mapping[str, str], store: StorePort) -> RecordReceiver:
    target = ship_target_of(settings, environ)
    if target is None:
        from portbook.audit.shipping.database_receiver import AuditRecords, DatabaseReceiver

        return DatabaseReceiver(AuditRecords(store))
    from portbook.audit.shipping.receiver_and_address import OtlpTarget

    if isinstance(target, OtlpTarget):
        from portbook.audit.shipping.otlp import OtlpReceiver

        variable = settings.ship_authorization
        authorization = environ[variable] if variable else None
        return OtlpReceiver(target, ca_file=settings.ship_ca, authorization=authorization)
    from portbook.audit.shipping.syslog import SyslogReceiver

    return SyslogReceiver(target, settings.ship_ca)


def _is_header(value: str) -> bool:
    return bool(value) and value.isprintable() and value.isascii()
