"""How a policy decides a call: its limits, its rules, and `decide`, which applies both. Pure: no I/O.

- `Limits`: the keys of `[policy]` beside the rules, declared once, which no rule lifts; deadlines.
- `Rule`: which calls a rule matches, and what happens to them.
- `decide` and `ToolPolicy`: the decision on one call, and its remedy. The same call gets the same decision.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from portbook.canonical import fingerprint, json_bytes
from portbook.errors import Reason
from portbook.globs import matches
from portbook.model import JSONObject
from portbook.text.named_tuple import NamedTuple
from portbook.tools.spec import Effect, ToolSpec

if TYPE_CHECKING:
    from portbook.net.destinations import Destinations
    from portbook.policy.where_condition import Condition
    from portbook.tools.http_operation import HttpOperation

__all__ = [
    "LIMIT_CHOICES",
    "LIMIT_NAMES",
    "Action",
    "Decision",
    "Limits",
    "Policy",
    "PolicyInput",
    "Rule",
    "ToolPolicy",
    "decide",
    "timeout_ms_of",
]

# Which effects need approval where no rule decides: the setting `policy.approval`.

ApprovalByDefault = Literal["never", "writes", "always"]


def needs_approval_by_default(approval: ApprovalByDefault, effect: Effect) -> bool:
    """Return whether a call with this effect needs approval: every effect but `read` counts as a write."""
    return approval == "always" or (approval == "writes" and effect is not Effect.READ)


_Default: TypeAlias = Literal["allow", "deny"]
_Approver: TypeAlias = Literal["operator", "client"]


class Limits(NamedTuple):
    """What no rule can lift, and what happens where no rule decides, as the operator wrote it.

    `settings/declared_settings.py` says what each one means and takes its default from here; the places and
    the digest of a policy follow these fields.
    """

    allowed_domains: tuple[str, ...] | None = None
    allowed_networks: tuple[str, ...] = ()
    allowed_methods: tuple[str, ...] | None = None
    effects: tuple[str, ...] | None = None
    max_payload_bytes: int | None = None
    max_execution_timeout_ms: int | None = None
    max_attempts: int | None = None
    max_calls_per_minute: int | None = None
    default: _Default = "allow"
    approval: ApprovalByDefault = "never"
    approver: _Approver = "operator"
    require_redaction: bool = False


LIMIT_NAMES: Final = Limits._fields
# By name, of those that are one of a few words.
LIMIT_CHOICES: Final[dict[str, tuple[str, ...]]] = {
    "default": get_args(_Default),
    "approval": get_args(ApprovalByDefault),
    "approver": get_args(_Approver),
}


# How long a call may run; an executor keeps the deadline.


def timeout_ms_of(own_ms: int | None, default_ms: int, limits: Limits) -> int:
    """Return the time that a call of a tool may take, in milliseconds.

    1. The tool's own timeout; without one, the default of the settings.
    2. Never more than policy allows (`max_execution_timeout_ms`).
    """
    timeout_ms = own_ms or default_ms
    longest = limits.max_execution_timeout_ms
    return timeout_ms if longest is None else min(timeout_ms, longest)


# The rules.


class Action(StrEnum):
    """What happens to a call; of several matching rules, the first of these actions wins."""

    DENY = "deny"
    ASK = "ask"
    ALLOW = "allow"


_EVERYTHING: Final = ("*",)


class Rule(NamedTuple):
    """A rule. Each of its lists must match; an empty `where` matches every call."""

    name: str
    action: Action
    place: str
    """The file and line of the rule."""
    tools: tuple[str, ...] = _EVERYTHING
    kinds: tuple[str, ...] = _EVERYTHING
    effects: tuple[str, ...] = _EVERYTHING
    tags: tuple[str, ...] = _EVERYTHING
    """Patterns of tags, one of which a tag of the tool must match; `*` alone also for tools without tags."""
    callers: tuple[str, ...] = _EVERYTHING
    sessions: tuple[str, ...] = _EVERYTHING
    where: tuple[Condition, ...] = ()
    approver: Literal["operator", "client"] = "operator"
    """Who may approve the call, if the rule asks."""

    def is_about(self, kind: str, name: str, effect: str, tags: tuple[str, ...]) -> bool:
        """Return whether this rule can ever match a call of that tool, resource or prompt."""
        return (
            matches(self.tools, name)
            and matches(self.kinds, kind)
            and matches(self.effects, effect)
            and (not self.selects_tags or any(matches(self.tags, tag) for tag in tags))
        )

    @property
    def selects_tags(self) -> bool:
        """Return whether it depends on the tags of a tool which rules match it."""
        return "*" not in self.tags

    def matches(self, caller: str, session: str, arguments: JSONObject, input_schema: JSONObject) -> bool:
        """Return whether the rule matches a call of a tool that it is about."""
        is_cautious = self.action is not Action.ALLOW
        return (
            matches(self.callers, caller)
            and matches(self.sessions, session)
            and all(each.holds(arguments, input_schema, is_cautious=is_cautious) for each in self.where)
        )

    def as_data(self) -> JSONObject:
        """Return the rule without its place, for the digest of the policy."""
        return {
            "name": self.name,
            "action": self.action.value,
            "tools": list(self.tools),
            "kinds": list(self.kinds),
            "effects": list(self.effects),
            # Only where they matter, so that other policies keep the digest that approvals are bound to.
            **({"tags": list(self.tags)} if self.selects_tags else {}),
            "callers": list(self.callers),
            "sessions": list(self.sessions),
            "where": {each.pointer: each.schema for each in self.where},
            "approver": self.approver,
        }


# The decision.


class PolicyInput(NamedTuple):
    """The parts of a call that policy may look at."""

    name: str
    effect: Effect
    caller: str
    arguments: JSONObject
    input_schema: JSONObject
    payload_bytes: int
    attempt: int = 1
    session: str | None = None
    operation: HttpOperation | None = None
    kind: Literal["tool", "resource", "prompt"] = "tool"
    tags: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        spec: ToolSpec,
        arguments: JSONObject,
        payload_bytes: int | None = None,
        *,
        caller: str,
        attempt: int = 1,
        session: str | None = None,
    ) -> PolicyInput:
        """Return a call of what `spec` declares; without `payload_bytes` the arguments are measured.

        Raises `NotJSON` where they have to be measured and JSON cannot hold them.
        """
        return cls(
            spec.name,
            spec.effect,
            caller,
            arguments,
            spec.input_schema,
            len(json_bytes(arguments)) if payload_bytes is None else payload_bytes,
            attempt,
            session,
            spec.operation,
            spec.policy_kind,
            spec.tags,
        )


class Decision(NamedTuple):
    """What happens to a call, which rule decided, and what would change that."""

    action: Action
    rule: str
    """The name of the rule or the setting that decided."""
    place: str
    """The file and line of that rule or setting."""
    remedy: str
    """What to change for a different decision."""
    reason: Reason | None = None
    """Why the call does not run; None if it does."""
    approver: Literal["operator", "client"] = "operator"
    """Who may approve the call, if it needs approval."""


class Policy(NamedTuple):
    """Limits and rules, and what follows from them. `places` holds the file and line of each limit."""

    limits: Limits = Limits()
    rules: tuple[Rule, ...] = ()
    destinations: Destinations | None = None
    """Where HTTP tools may go: `limits.allowed_domains`, or the base URLs that tools declare."""
    methods: frozenset[str] | None = None
    """`limits.allowed_methods` in upper case; None for any."""
    is_redaction_missing: bool = False
    """Whether redaction is required and switched off."""
    places: tuple[tuple[str, str], ...] = ()
    digest: str = ""
    """Changes whenever a decision could change; an approval is bound to it."""

    def place_of(self, setting: str) -> str:
        """Return the file and line of a limit."""
        return dict(self.places).get(setting, "default")

    def lists(self, operation: HttpOperation) -> bool:
        """Return whether the destination of an operation is allowed."""
        return (
            self.destinations is not None
            and operation.destination is not None
            and self.destinations.permits(operation.destination)
        )

    def denied_where_dialled(self) -> Decision:
        """Return the decision on a call whose host resolved to an address that is not allowed."""
        return _deny(self, "allowed_networks", "add the network of its host to allowed_networks")

    def digest_of_rule(self, name: str) -> str | None:
        """Return the fingerprint of the rule of this name, or None if it is the name of a limit."""
        return next((fingerprint(rule.as_data()) for rule in self.rules if rule.name == name), None)

    @property
    def can_ask(self) -> bool:
        """Return whether any call can need approval."""
        return self.limits.approval != "never" or any(rule.action is Action.ASK for rule in self.rules)


class ToolPolicy(NamedTuple):
    """A policy as it applies to one tool: everything that no call can change is worked out."""

    barred: Decision | None
    """The denial of every call, where a limit forbids the tool itself."""
    max_payload_bytes: int | None
    max_attempts: int | None
    rules: tuple[Rule, ...]
    """The rules that can match a call of the tool."""
    otherwise: Decision
    """The decision on a call that no rule matches."""
    policy: Policy

    @classmethod
    def of(cls, policy: Policy, spec: ToolSpec) -> ToolPolicy:
        """Return the part of `policy` that applies to what `spec` declares."""
        return cls.about(policy, spec.policy_kind, spec.name, spec.effect, spec.operation, spec.tags)

    @classmethod
    def about(
        cls,
        policy: Policy,
        kind: str,
        name: str,
        effect: Effect,
        operation: HttpOperation | None,
        tags: tuple[str, ...],
    ) -> ToolPolicy:
        """Return the part of `policy` that applies to a tool with these traits."""
        limits = policy.limits
        return cls(
            _barred(policy, effect, operation),
            limits.max_payload_bytes,
            limits.max_attempts,
            tuple(rule for rule in policy.rules if rule.is_about(kind, name, effect, tags)),
            _by_default(policy, effect),
            policy,
        )

    @property
    def constant(self) -> Decision | None:
        """Return the decision on every call of the tool; None where it depends on the call."""
        if self.barred is not None:
            return self.barred
        has_caps = self.max_payload_bytes is not None or self.max_attempts is not None
        return None if has_caps or self.rules else self.otherwise

    def decide(self, subject: PolicyInput) -> Decision:
        """Return what happens to a call of the tool."""
        return self.barred or self._limited(subject) or self._ruled(subject) or self.otherwise

    def _limited(self, subject: PolicyInput) -> Decision | None:
        cap = self.max_payload_bytes
        if cap is not None and subject.payload_bytes > cap:
            return _deny(
                self.policy,
                "max_payload_bytes",
                f"send at most {cap} bytes of arguments, or raise max_payload_bytes",
                Reason.PAYLOAD_TOO_LARGE,
            )
        cap = self.max_attempts
        if cap is not None and subject.attempt > cap:
            return _deny(self.policy, "max_attempts", f"stop after attempt {cap}, or raise max_attempts")
        return None

    def _ruled(self, subject: PolicyInput) -> Decision | None:
        matched: dict[Action, Rule] = {}
        for rule in self.rules:
            if rule.action not in matched and rule.matches(
                subject.caller, subject.session or "", subject.arguments, subject.input_schema
            ):
                matched[rule.action] = rule
        if not matched:  # nearly every call
            return None
        return _of_rule(matched[next(action for action in Action if action in matched)])


def decide(policy: Policy, subject: PolicyInput) -> Decision:
    """Return what happens to a call.

    The first of these that applies decides:

    1. Redaction is required and switched off: deny, for its record could hold secrets.
    2. Its effect is not one of those that are allowed: deny.
    3. Its destination is not allowed: deny.
    4. Its HTTP method is not allowed: deny.
    5. Its arguments are larger than the cap: deny.
    6. Its attempt is beyond the cap: deny.
    7. A rule that denies matches: deny.
    8. A rule that asks matches: ask.
    9. A rule that allows matches: allow.
    10. The default for what no rule decides is to deny: deny.
    11. The approval setting requires approval for calls like this: ask.
    12. Allow.

    Limits come before rules because no rule may lift them; deny before ask before allow so that adding a
    rule that permits can never undo one that forbids.
    """
    about = ToolPolicy.about(
        policy, subject.kind, subject.name, subject.effect, subject.operation, subject.tags
    )
    return about.decide(subject)


def _barred(policy: Policy, effect: Effect, operation: HttpOperation | None) -> Decision | None:
    if policy.is_redaction_missing:
        return _deny(policy, "require_redaction", "switch redaction on: [redaction] enabled = true")
    if policy.limits.effects is not None and effect not in policy.limits.effects:
        return _deny(policy, "effects", f"add {effect} to effects")
    if operation is None:
        return None
    if not policy.lists(operation):
        return _deny(policy, "allowed_domains", "add the host of its base_url to allowed_domains")
    if policy.methods is not None and operation.method not in policy.methods:
        return _deny(policy, "allowed_methods", f"add {operation.method} to allowed_methods")
    return None


def _by_default(policy: Policy, effect: Effect) -> Decision:
    limits = policy.limits
    if limits.default == "deny":
        return _deny(policy, "default", "add a rule that allows the call, or set default to allow")
    if needs_approval_by_default(limits.approval, effect):
        return Decision(
            Action.ASK,
            "approval",
            policy.place_of("approval"),
            "approve the call, or add a rule that allows it",
            Reason.APPROVAL_REQUIRED,
            limits.approver,
        )
    return Decision(
        Action.ALLOW,
        "default",
        policy.place_of("default"),
        "add a rule that denies the call or asks for approval",
    )


def _of_rule(rule: Rule) -> Decision:
    pointers = ", ".join(each.pointer or "(root)" for each in rule.where)
    change = f"send different values at {pointers}, or change the rule" if pointers else "change the rule"
    if rule.action is Action.ALLOW:
        return Decision(
            rule.action, rule.name, rule.place, "add a rule that denies the call or asks for approval"
        )
    if rule.action is Action.ASK:
        return Decision(
            rule.action,
            rule.name,
            rule.place,
            f"approve the call, or {change}",
            Reason.APPROVAL_REQUIRED,
            rule.approver,
        )
    return Decision(rule.action, rule.name, rule.place, change, Reason.POLICY_VIOLATION)


def _deny(policy: Policy, setting: str, remedy: str, reason: Reason = Reason.POLICY_VIOLATION) -> Decision:
    return Decision(Action.DENY, setting, policy.place_of(setting), remedy, reason)
