"""What settings describe, or everything that is wrong with them at once: what a start and a dry run share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from portbook.app.rules_from_settings import policy_of, redactor_of, secrets_in
from portbook.app.tools_from_settings import Collected, collect_tools
from portbook.dialects.envelope_messages import Envelope
from portbook.dialects.rest_bodies import Rest
from portbook.net.allowed_hosts_and_origins import BadHost, Hosts
from portbook.redaction import Redactor
from portbook.schema.engine import LateValidator, Validator
from portbook.settings import BadSettings, ProblemList, Settings
from portbook.text.named_tuple import NamedTuple
from portbook.tools.contract_registry import BadBundle, SchemaRegistry
from portbook.tools.spec import BadTool
from portbook.tools.toolset import Toolset

if TYPE_CHECKING:
    from portbook.audit.keyed_digests import AuditKey
    from portbook.provenance.signing import Signer

__all__ = ["Contracts", "UsableSettings", "audit_key_of", "signer_of", "usable_settings"]


class Contracts(NamedTuple):
    """The wire contracts of our own, with the operator's schemas."""

    envelope: Envelope
    rest: Rest


class UsableSettings(NamedTuple):
    """The parts that settings describe, before anything is opened."""

    hosts: Hosts
    contracts: Contracts
    collected: Collected


def usable_settings(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    is_exposed: bool,
    toolsets: Sequence[Toolset] = (),
) -> UsableSettings:
    """Return the parts that `settings` describe; `toolsets` are served beside those that they name.

    Raises `BadTool`, `BadBundle` or `BadSettings` for what cannot be used. Where a part cannot be used, the
    others are checked before it is told.
    """
    registry = SchemaRegistry(settings.schema_root)
    problems = ProblemList(BadTool, BadBundle, BadSettings)
    hosts = contracts = collected = None
    with problems:
        hosts = _hosts(settings, is_exposed=is_exposed)
    with problems:
        contracts = _contracts(settings, registry)
    with problems:
        signer_of(settings)
    with problems:
        audit_key_of(settings)
    with problems:
        _require_usable_shipping(settings, environ)
    with problems:
        redact = partial(_without_secrets, settings, environ)
        collected = collect_tools(settings, registry, given=toolsets, environ=environ, redact=redact)
    if hosts is None or contracts is None or collected is None or problems.texts():
        with problems:
            redactor_of(settings, (), b"")
        with problems:
            policy_of(settings, () if collected is None else collected.catalog.specs())
        problems.raise_all()
    assert hosts is not None
    assert contracts is not None
    assert collected is not None
    return UsableSettings(hosts, contracts, collected)


def _without_secrets(settings: Settings, environ: Mapping[str, str], text: str) -> str:
    """Return what an author's code said, for the operator: it may quote what it could not log in with."""
    secrets = secrets_in(settings, environ)
    try:
        redactor = redactor_of(settings, secrets, b"")
    except BadSettings:  # which are told, too
        redactor = Redactor(secrets=secrets)
    return text if redactor is None else redactor.redact_text(text)


def _require_usable_shipping(settings: Settings, environ: Mapping[str, str]) -> None:
    given = settings.ship, settings.ship_to, settings.ship_ca, settings.ship_authorization
    if any(each is not None for each in given):
        from portbook.app.shipping_from_settings import ship_target_of  # late: few ship their records

        ship_target_of(settings, environ)


def signer_of(settings: Settings) -> Signer | None:
    """Return what signs envelopes, or None where they are not signed.

    Raises `BadSettings` where the key cannot be used.
    """
    if settings.signing_key is None:
        return None
    # Late: only where envelopes are signed.
    from portbook.app.key_files import load_signing_key
    from portbook.provenance.signing import BadKey

    path = ("envelope", "signing_key")
    try:
        return load_signing_key(settings.signing_key)
    except BadKey as error:
        raise settings.complain(path, f"cannot be used: {error}") from None
    except OSError as error:
        remedy = f"`portbook keys signing {settings.signing_key}` makes one"
        raise settings.complain(path, f"cannot be read: {error.strerror}; {remedy}") from None


def audit_key_of(settings: Settings) -> AuditKey | None:
    """Return what makes digests of arguments, results and claims, or None where records have none.

    Raises `BadSettings` where the key cannot be used.
    """
    if settings.audit_key is None:
        return None
    # Late: only where there is one.
    from portbook.app.key_files import load_audit_key
    from portbook.audit.keyed_digests import BadAuditKey

    path = ("audit", "key")
    try:
        return load_audit_key(settings.audit_key)
    except BadAuditKey as error:
        raise settings.complain(path, f"cannot be used: {error}") from None
    except OSError as error:
        remedy = f"`portbook audit key {settings.audit_key}` makes one"
        raise settings.complain(path, f"cannot be read: {error.strerror}; {remedy}") from None


def _hosts(settings: Settings, *, is_exposed: bool) -> Hosts:
    try:
        return Hosts(is_exposed=is_exposed, names=settings.allowed_hosts, origins=settings.allowed_origins)
    except BadHost as error:
        raise settings.complain(("server", error.setting, error.number), str(error)) from None


def _contracts(settings: Settings, registry: SchemaRegistry) -> Contracts:
    # A contract of the operator is compiled now, to find its mistakes; our own when it is first used.
    contract = LateValidator if settings.schema_root is None else _loaded
    return Contracts(
        Envelope(contract(registry.load_envelope), contract(partial(_request_contract, registry))),
        Rest(contract(registry.load_execute)),
    )


def _request_contract(registry: SchemaRegistry) -> Validator:
    from portbook.envelope.request_for_envelope import REQUEST  # late: only where such a request is read

    return registry.load(REQUEST)


def _loaded(load: Callable[[], Validator]) -> Validator:
    return load()
