"""Settings to the rules in force: policy, keys and redaction, also of secrets that are learned later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from portbook.access.rate_limit import RateLimit, Rates
from portbook.app.start_warnings import OPERATOR_KEY
from portbook.envelope.call_envelope import CallEnvelopes
from portbook.policy import BadPolicy, Policy, read_policy
from portbook.redaction import BadRedaction, Redactor
from portbook.settings import BadSettings, ProblemList, Settings
from portbook.stages.rules_in_force import Rules
from portbook.stores.caller_keys import AllowedKey, Callers
from portbook.tools.spec import ToolSpec

if TYPE_CHECKING:
    from portbook.audit.keyed_digests import AuditKey
    from portbook.executors.dispatch import Dispatch
    from portbook.pipeline import Pipeline
    from portbook.provenance.signing import Signer
    from portbook.stores.shared_rates import TokenBlocks
    from portbook.tools.http_operation import HttpOperation

__all__ = ["learn_secrets", "policy_of", "redactor_of", "rules_of", "secrets_in"]


def rules_of(
    settings: Settings,
    specs: Iterable[ToolSpec],
    environ: Mapping[str, str],
    *,
    is_exposed: bool,
    stored: Callable[[], tuple[AllowedKey, ...] | None] = lambda: None,
    secrets: Iterable[str] = (),
    hash_key: bytes = b"",
    signer: Signer | None = None,
    audit_key: AuditKey | None = None,
    blocks: Callable[[], TokenBlocks] | None = None,
) -> Rules:
    """Return the rules that `settings` describe for these tools; `secrets` are values known to be secret.

    If the settings do not say, a key is required if the boundary `is_exposed`. `blocks` returns the tokens of
    this process, where calls are counted over several.

    Raises `BadSettings` for what cannot be used.
    """
    needs_key = is_exposed if settings.keys_required is None else settings.keys_required
    operator_key = environ.get(OPERATOR_KEY) or None
    known = [*secrets, *secrets_in(settings, environ)]
    problems = ProblemList(BadSettings)
    policy = redactor = None
    with problems:
        policy = policy_of(settings, specs)
    with problems:
        redactor = redactor_of(settings, known, hash_key)
    problems.raise_all()
    assert policy is not None
    return Rules(
        policy=policy,
        callers=Callers(settings.allowed_keys, required=needs_key, stored=stored, operator_key=operator_key),
        rates=_rates_of(settings, blocks),
        redactor=redactor,
        secrets=tuple(known),
        enclosing=CallEnvelopes(settings.envelope_default, signer),
        on_audit_failure=settings.on_audit_failure,
        records_arguments=settings.audit_arguments,
        audit_key=audit_key,
        timeout_ms=settings.timeout_ms,
        settings=settings,
    )


def secrets_in(settings: Settings, environ: Mapping[str, str]) -> list[str]:
    """Return the values known to be secret that `settings` hold, or name in the environment."""
    named = *settings.secret_variables, OPERATOR_KEY, settings.ship_authorization
    known = [environ[name] for name in named if name and environ.get(name)]
    if settings.store_url is not None:
        known += _passwords_in(settings.store_url, settings.store_direct_url)
    return known


def _rates_of(settings: Settings, blocks: Callable[[], TokenBlocks] | None) -> RateLimit:
    per_minute = settings.limits.max_calls_per_minute
    counting = settings.rate_counting or ("leased" if settings.is_shared else "process")
    if per_minute is None or blocks is None or counting == "process":
        return Rates(per_minute)
    from portbook.stores.shared_rates import SharedRates  # late: one process alone counts in memory

    return SharedRates(blocks(), per_minute, is_exact=counting == "exact")


def policy_of(settings: Settings, specs: Iterable[ToolSpec]) -> Policy:
    """Return the policy that `settings` describe for these tools, which declare base URLs.

    Raises `BadSettings` for what cannot be used, with file and line.
    """
    specs = list(specs)
    operations = [spec.operation for spec in specs if spec.operation is not None]
    try:
        policy = read_policy(
            settings.limits,
            settings.policy_rules,
            sorted({*_urls_of_servers(settings), *_listed_by_default(operations)}),
            lambda path: settings.place_of(*path),
            own_urls=sorted({operation.base_url for operation in operations if operation.is_listed}),
            is_redacting=settings.redaction_enabled,
        )
    except BadPolicy as error:
        mistakes = [settings.complain(each.path, str(each)) for each in (error, *error.others)]
        raise BadSettings(*(str(each) for each in mistakes)) from None
    _refuse_impossible_conditions(settings, policy, specs)
    return policy


def _refuse_impossible_conditions(settings: Settings, policy: Policy, specs: Sequence[ToolSpec]) -> None:
    """Check that no rule waits for an argument that the tools it names cannot be given.

    Raises `BadSettings` for the first one, with file and line.
    """
    for number, rule in enumerate(policy.rules):
        if not rule.where:
            continue
        from portbook.policy.rules_without_effect import impossible_condition  # late: few rules have any

        if (found := impossible_condition(rule, specs)) is not None:
            pointer, sentence = found
            raise settings.complain(("policy", "rules", number, "where", pointer), sentence)


def _listed_by_default(operations: Iterable[HttpOperation]) -> Iterator[str]:
    """Yield the base URLs that may be called without an allowlist: the operator's own, wherever they lie."""
    for operation in operations:
        if operation.is_proposed:
            from portbook.apis.openapi.servers import is_callable_by_default  # late: only for documents

            if not is_callable_by_default(operation):
                continue
        yield operation.base_url


def _urls_of_servers(settings: Settings) -> Iterator[str]:
    """Yield the addresses of MCP servers, which the operator declares by naming them."""
    for table in settings.mcp_tables.values():
        if isinstance(table, dict) and isinstance(url := cast("dict[str, Any]", table).get("url"), str):
            yield url


def redactor_of(settings: Settings, secrets: Iterable[str], hash_key: bytes) -> Redactor | None:
    """Return the redactor, or None if redaction is switched off.

    Raises `BadSettings` for a pattern or a pointer that cannot be one.
    """
    if not settings.redaction_enabled:
        return None
    try:
        return Redactor(
            settings.redacted_keys,
            settings.redacted_pointers,
            settings.redacted_patterns,
            secrets,
            settings.redaction_mode,
            detectors=settings.detectors,
            cards=settings.redacted_cards,
            hash_key=hash_key,
        )
    except BadRedaction as error:
        raise settings.complain(
            ("redaction", error.setting, error.number), f"cannot be used: {error}"
        ) from None


def _passwords_in(*urls: str | None) -> list[str]:
    """Return the passwords that addresses of the store hold."""
    try:
        # Late: few stores have an address. As libpq reads it, which is not how URLs are read elsewhere.
        from portbook.stores.postgres.connection_address_and_errors import passwords_in
    except ImportError:
        return []  # nothing can connect to it
    return [password for url in urls if url is not None for password in passwords_in(url)]


# Secrets that are learned while the boundary runs: redacted from then on.


def learn_secrets(pipeline: Pipeline, executor: Dispatch) -> None:
    """Redact a secret that was just learned, such as a renewed token, from now on."""
    rules = pipeline.rules
    if rules.redactor is not None:
        known = (*rules.secrets, *executor.secrets())
        pipeline.govern(replace(rules, redactor=rules.redactor.with_secrets(known)))
