"""Every setting there is: where it stands in the file, its variable, its default, and what it means."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_type_hints

from portbook.policy.limits import Limits
from portbook.schema.pins import PINS

__all__ = ["SETTINGS", "Kind", "Setting"]

Kind = Literal["text", "path", "whole", "switch", "texts", "keys", "choice", "address", "tables", "table"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting."""

    key: str
    field: str
    """Its name in `Settings`; that of a limit begins with `limits.`."""
    kind: Kind
    default: Any
    env: str | None
    meaning: str
    minimum: int = 0
    maximum: int = 2**31
    choices: tuple[str, ...] = ()


def _limit(name: str, kind: Kind, meaning: str, minimum: int = 0, maximum: int = 2**31) -> Setting:
    """Return the setting of one of the `Limits`, which declare its default and its choices."""
    choices = get_args(get_type_hints(Limits)[name]) if kind == "choice" else ()
    default = getattr(Limits(), name)
    return Setting(
        f"policy.{name}", f"limits.{name}", kind, default, None, meaning, minimum, maximum, choices
    )


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
        "server.allowed_hosts",
        "allowed_hosts",
        "texts",
        (),
        None,
        "Names that a request's Host may have beside those of loopback: name, for any port, or name:port. "
        "Bound to more than loopback, any name is taken unless some are listed.",
    ),
    Setting(
        "server.allowed_origins",
        "allowed_origins",
        "texts",
        (),
        None,
        "Sites whose pages may call tools from a browser, such as http://localhost:6274.",
    ),
    Setting(
        "server.name",
        "server_name",
        "text",
        "portbook",
        None,
        "Name by which MCP clients know this server.",
    ),
    Setting(
        "server.title",
        "server_title",
        "text",
        None,
        None,
        "Name that MCP clients show to people; by default they show the name.",
    ),
    Setting(
        "server.version",
        "server_version",
        "text",
        None,
        None,
        "Version of what is served, as MCP clients are told it; by default Portbook's own.",
    ),
    Setting(
        "server.instructions",
        "server_instructions",
        "text",
        None,
        None,
        "How to use what is served, told to MCP clients when they connect; many put it before their model.",
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
        "python.tracebacks",
        "tracebacks",
        "switch",
        False,
        None,
        "Whether tracebacks of tools go to standard error: for development, as they may hold secrets.",
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
        "assets.enabled",
        "assets_enabled",
        "switch",
        None,
        None,
        "Whether the asset tools are served; by default where there is a folder of schemas or examples.",
    ),
    Setting(
        "assets.schemas",
        "asset_schemas",
        "path",
        None,
        "SYN_SCHEMAS_DIR",
        "Folder of schemas; by default libs/synesthetic-schemas/jsonschema, where there is one.",
    ),
    Setting(
        "assets.examples",
        "asset_examples",
        "path",
        None,
        "SYN_EXAMPLES_DIR",
        "Folder of examples; by default libs/synesthetic-schemas/examples, where there is one.",
    ),
    Setting(
        "assets.max_batch",
        "asset_max_batch",
        "whole",
        100,
        "MCP_MAX_BATCH",
        "How many assets validate_many takes.",
        1,
    ),
    Setting(
        "assets.backend_url",
        "backend_url",
        "text",
        None,
        "SYN_BACKEND_URL",
        "Address of the backend that populate_backend sends to; without one, it is unsupported.",
    ),
    Setting(
        "assets.backend_path",
        "backend_path",
        "text",
        "/synesthetic-assets/",
        "SYN_BACKEND_ASSETS_PATH",
        "Path below that address to which assets are sent.",
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
    _limit(
        "allowed_domains",
        "texts",
        "Where HTTP tools may go: host, host:port or *.domain; by default the declared base URLs alone.",
    ),
    _limit(
        "allowed_networks",
        "texts",
        "Private networks, such as 10.1.0.0/16, that a listed name may lie in.",
    ),
    _limit(
        "allowed_methods",
        "texts",
        "HTTP verbs that tools may use; by default any.",
    ),
    _limit(
        "max_payload_bytes",
        "whole",
        "Largest arguments of a call, as canonical JSON; by default whatever fits into a message.",
    ),
    _limit(
        "max_execution_timeout_ms",
        "whole",
        "Longest that any tool may take, whatever deadline of its own it has.",
        1,
        86_400_000,
    ),
    _limit(
        "max_attempts",
        "whole",
        "Highest attempt number that a call may carry, and how often an HTTP tool may be tried in one call.",
        1,
    ),
    _limit(
        "max_calls_per_minute",
        "whole",
        "How many calls one caller may make in a minute.",
        1,
    ),
    _limit(
        "default",
        "choice",
        "What happens to a call that no rule decides on.",
    ),
    _limit(
        "approval",
        "choice",
        "Which calls a person has to approve where no rule decides.",
    ),
    _limit(
        "approver",
        "choice",
        "Who may approve: an operator, or the person behind the client, where it can be asked.",
    ),
    _limit(
        "require_redaction",
        "switch",
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
        "approvals.wait_s",
        "approval_wait_s",
        "whole",
        0,
        None,
        "How long a call waits for a decision, where it does not say so itself.",
        0,
        600,
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
