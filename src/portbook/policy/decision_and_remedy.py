"""`decide`: the one function that applies a policy. Pure: the same call gets the same decision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from portbook.canonical import fingerprint, json_bytes
from portbook.errors import Reason
from portbook.model import JSONObject
from portbook.policy.declared_limits import Limits, needs_approval_by_default
from portbook.policy.rule import Action, Rule
from portbook.text.named_tuple import NamedTuple
from portbook.tools.spec import Effect, ToolSpec

if TYPE_CHECKING:
    from portbook.net.destinations import Destinations
    from portbook.tools.http_operation import HttpOperation

__all__ = ["Decision", "Policy", "PolicyInput", "ToolPolicy", "decide"]


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
