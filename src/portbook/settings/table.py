"""Every setting there is: where it stands in the file, its variable, its default, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from portbook.schema.pins import PINS

__all__ = ["SETTINGS", "Kind", "Setting"]

Kind = Literal["text", "path", "whole", "switch", "texts", "keys", "choice", "address", "tables", "table"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    key: str
    field: str
    """Its name in `Settings`."""
    kind: Kind
    default: Any
    env: str | None
    meaning: str
    minimum: int = 0
    maximum: int = 2**31
    choices: tuple[str, ...] = ()


SETTINGS: Final = (
    Setting(
        "schema_override_uri",
        "schema_override_uri",
        "address",
        None,
        "PORTBOOK_SCHEMA_OVERRIDE_URI",
        "File, or file:, http: or https: address, of a schema to use instead of an embedded official one.",
    ),
    Setting(
        "schema_override_revision",
        "schema_override_revision",
        "text",
        max(PINS),
        "PORTBOOK_SCHEMA_OVERRIDE_REVISION",
        "Revision of MCP whose embedded schema is replaced; by default the newest.",
    ),
    Setting(
        "schema_override_sha256",
        "schema_override_sha256",
        "text",
        None,
        "PORTBOOK_SCHEMA_OVERRIDE_SHA256",
        "What the sha256 of that schema must be, in hexadecimal; without it any schema is taken.",
    ),
    Setting(
        "server.host", "host", "text", "127.0.0.1", "PORTBOOK_HOST", "Address that the HTTP door binds to."
    ),
    Setting(
        "server.port",
        "port",
        "whole",
        8765,
        "PORTBOOK_PORT",
        "Port of the HTTP door; 0 takes a free one.",
        0,
        65535,
    ),
    Setting(
        "audit.log_dir",
        "log_dir",
        "path",
        Path("runs"),
        "PORTBOOK_LOG_DIR",
        "Folder under which records are kept.",
    ),
    Setting(
        "audit.keep",
        "keep_runs",
        "whole",
        1000,
        None,
        "How many runs' files to keep; older ones are removed at start.",
        1,
    ),
    Setting(
        "audit.on_failure",
        "on_audit_failure",
        "choice",
        "refuse",
        None,
        "What to do with calls while records cannot be written.",
        choices=("refuse", "warn"),
    ),
    Setting(
        "audit.stderr",
        "audit_to_stderr",
        "switch",
        False,
        None,
        "Whether execution records go to standard error as well.",
    ),
    Setting(
        "audit.arguments",
        "audit_arguments",
        "switch",
        False,
        None,
        "Whether execution records hold the arguments, redacted.",
    ),
    Setting(
        "store.path",
        "store_path",
        "path",
        Path("portbook.db"),
        "PORTBOOK_STORE",
        "File of approvals and keys; by default beside the settings file.",
    ),
    Setting(
        "python.toolsets", "toolsets", "texts", (), None, "Python files or modules whose toolsets are served."
    ),
    Setting(
        "execution.timeout_ms",
        "timeout_ms",
        "whole",
        30_000,
        None,
        "Deadline of a tool that does not set its own.",
        1,
        86_400_000,
    ),
    Setting(
        "execution.workers",
        "workers",
        "whole",
        16,
        None,
        "Worker threads for plain Python functions.",
        1,
        1024,
    ),
    Setting(
        "docs.enabled",
        "docs_enabled",
        "switch",
        True,
        None,
        "Whether the built-in tool docs.search is served.",
    ),
    Setting(
        "docs.folder",
        "docs_folder",
        "path",
        None,
        "PORTBOOK_DOCS",
        "Folder that docs.search searches; by default these docs.",
    ),
    Setting(
        "schemas.root",
        "schema_root",
        "path",
        None,
        "PORTBOOK_SCHEMA_ROOT",
        "Folder of contract schemas; a bundle under its tools/ replaces the contract of the tool it names.",
    ),
    Setting(
        "ids.deterministic",
        "deterministic_ids",
        "switch",
        False,
        None,
        "Make request, trace and span ids from the content alone.",
    ),
    Setting(
        "validation.incoming",
        "incoming_validation",
        "choice",
        "enforce",
        None,
        "What to do with a message that the official MCP schema does not allow.",
        choices=("enforce", "warn", "off"),
    ),
    Setting(
        "validation.outgoing",
        "outgoing_validation",
        "choice",
        "enforce",
        None,
        "The same for what leaves.",
        choices=("enforce", "warn", "off"),
    ),
    Setting(
        "keys.required",
        "keys_required",
        "switch",
        None,
        None,
        "Whether a call needs a key; by default only where HTTP is bound to more than loopback.",
    ),
    Setting(
        "keys.allow",
        "allowed_keys",
        "keys",
        (),
        None,
        "Keys that are accepted: name, sha256 of the key, and patterns of the tools that it is for.",
    ),
    Setting(
        "policy.allowed_domains",
        "allowed_domains",
        "texts",
        None,
        None,
        "Where HTTP tools may go: host, host:port or *.domain; by default the declared base URLs alone.",
    ),
    Setting(
        "policy.allowed_networks",
        "allowed_networks",
        "texts",
        (),
        None,
        "Private networks, such as 10.1.0.0/16, that a listed name may lie in.",
    ),
    Setting(
        "policy.allowed_methods",
        "allowed_methods",
        "texts",
        None,
        None,
        "HTTP verbs that tools may use; by default any.",
    ),
    Setting(
        "policy.max_payload_bytes",
        "max_payload_bytes",
        "whole",
        None,
        None,
        "Largest arguments of a call, as canonical JSON; by default whatever fits into a message.",
    ),
    Setting(
        "policy.max_execution_timeout_ms",
        "max_execution_timeout_ms",
        "whole",
        None,
        None,
        "Longest that any tool may take, whatever deadline of its own it has.",
        1,
        86_400_000,
    ),
    Setting(
        "policy.max_attempts",
        "max_attempts",
        "whole",
        None,
        None,
        "Highest attempt number that a call may carry, and how often an HTTP tool may be tried in one call.",
        1,
    ),
    Setting(
        "policy.max_calls_per_minute",
        "max_calls_per_minute",
        "whole",
        None,
        None,
        "How many calls one caller may make in a minute.",
        1,
    ),
    Setting(
        "policy.default",
        "policy_default",
        "choice",
        "allow",
        None,
        "What happens to a call that no rule decides on.",
        choices=("allow", "deny"),
    ),
    Setting(
        "policy.approval",
        "approval",
        "choice",
        "never",
        None,
        "Which calls a person has to approve where no rule decides.",
        choices=("never", "writes", "always"),
    ),
    Setting(
        "policy.approver",
        "approver",
        "choice",
        "operator",
        None,
        "Who may approve: an operator, or the person behind the client, where it can be asked.",
        choices=("operator", "client"),
    ),
    Setting(
        "policy.require_redaction",
        "require_redaction",
        "switch",
        False,
        None,
        "Whether calls are denied while redaction is switched off.",
    ),
    Setting(
        "policy.rules",
        "policy_rules",
        "tables",
        (),
        None,
        "Rules: name, action, and what they match; see how to write a policy.",
    ),
    Setting(
        "approvals.expires_s",
        "approval_expires_s",
        "whole",
        3600,
        None,
        "How long a person has to decide, and the caller to use the decision.",
        1,
        31_536_000,
    ),
    Setting(
        "redaction.enabled",
        "redaction_enabled",
        "switch",
        True,
        None,
        "Whether secrets are taken out of results, errors, records and approvals.",
    ),
    Setting(
        "redaction.keys",
        "redacted_keys",
        "texts",
        (),
        None,
        "Names of members whose values are secret, beside the built-in ones.",
    ),
    Setting(
        "redaction.pointers",
        "redacted_pointers",
        "texts",
        (),
        None,
        "JSON Pointers of values that are secret; * stands for one segment.",
    ),
    Setting(
        "redaction.patterns",
        "redacted_patterns",
        "texts",
        (),
        None,
        "Patterns; a string in which one is found is taken out whole.",
    ),
    Setting(
        "redaction.secrets",
        "secret_variables",
        "texts",
        (),
        None,
        "Names of environment variables whose values are secret wherever they appear.",
    ),
    Setting(
        "redaction.detectors",
        "detectors",
        "switch",
        True,
        None,
        "Whether what looks like a key, a token or a card number is taken out.",
    ),
    Setting(
        "redaction.mode",
        "redaction_mode",
        "choice",
        "replace",
        None,
        "What takes the place of a secret.",
        choices=("replace", "remove", "hash"),
    ),
    Setting(
        "envelope.default",
        "envelope_default",
        "choice",
        "off",
        None,
        "What callers get that ask for nothing: their result, one in an envelope, or one with provenance.",
        choices=("off", "wrap", "provenance"),
    ),
    Setting(
        "envelope.signing_key",
        "signing_key",
        "path",
        None,
        "PORTBOOK_SIGNING_KEY",
        "File of the Ed25519 key that signs envelopes with provenance; `portbook keys signing` makes one.",
    ),
    Setting(
        "http",
        "http_tables",
        "table",
        {},
        None,
        "HTTP APIs, one table each: `[http.NAME]`; see how to expose HTTP APIs.",
    ),
)
