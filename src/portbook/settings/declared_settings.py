"""Every setting: its key in the file, its variable, its default, and its meaning."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, Literal, get_args

from portbook.policy.decision_limits_rules_and_remedy import LIMIT_CHOICES, Limits
from portbook.schema.official_schema_digests import PINS
from portbook.text.named_tuple import NamedTuple
from portbook.tools.tool_names import ToolNames

__all__ = ["SETTINGS", "CertificateFiles", "Kind", "Setting"]

Kind = Literal[
    "text",
    "path",
    "whole",
    "count",
    "switch",
    "texts",
    "keys",
    "choice",
    "address",
    "tables",
    "table",
    "certificate",
]


class CertificateFiles(NamedTuple):
    """The files of a certificate and its key."""

    cert: Path
    key: Path


class Setting(NamedTuple):
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
    default, choices = Limits._field_defaults[name], LIMIT_CHOICES.get(name, ())
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
        "File, or file:, http: or https: address, of a schema that replaces an embedded official one.",
    ),
    Setting(
        "schema_override_revision",
        "schema_override_revision",
        "choice",
        max(PINS),
        "PORTBOOK_SCHEMA_OVERRIDE_REVISION",
        "Revision of MCP whose embedded schema is replaced; by default the newest.",
        choices=tuple(sorted(PINS)),
    ),
    Setting(
        "schema_override_sha256",
        "schema_override_sha256",
        "text",
        None,
        "PORTBOOK_SCHEMA_OVERRIDE_SHA256",
        "Expected sha256 of that schema, in hexadecimal; without it any schema is accepted.",
    ),
    Setting(
        "server.host", "host", "text", "127.0.0.1", "PORTBOOK_HOST", "Address that the HTTP server binds to."
    ),
    Setting(
        "server.port",
        "port",
        "whole",
        8765,
        "PORTBOOK_PORT",
        "Port of the HTTP server; 0 picks a free one.",
        0,
        65535,
    ),
    Setting(
        "server.workers",
        "worker_processes",
        "count",
        1,
        "PORTBOOK_WORKERS",
        "Processes that serve HTTP together, at one address; auto is one for each processor.",
        1,
        256,
    ),
    Setting(
        "server.allowed_hosts",
        "allowed_hosts",
        "texts",
        (),
        None,
        "Names that the Host header may hold besides those of loopback: name, for any port, or name:port. "
        "Bound to more than loopback, any name is accepted unless some are listed.",
    ),
    Setting(
        "server.allowed_origins",
        "allowed_origins",
        "texts",
        (),
        None,
        "Origins whose pages may call tools from a browser, such as http://localhost:6274.",
    ),
    Setting(
        "server.socket",
        "socket",
        "path",
        None,
        None,
        "Path of a Unix socket to serve HTTP at, for its owner alone, in place of the address and port.",
    ),
    Setting(
        "server.tls",
        "tls",
        "certificate",
        None,
        None,
        "Certificate and key of HTTPS, two files in PEM form: { cert = FILE, key = FILE }. SIGHUP reads them "
        "again.",
    ),
    Setting(
        "server.trusted_proxies",
        "trusted_proxies",
        "texts",
        (),
        None,
        "Addresses or networks of proxies whose X-Forwarded-For names their client, which is then limited in "
        "their place.",
    ),
    Setting(
        "server.legacy_sse",
        "legacy_sse",
        "switch",
        False,
        None,
        "Whether clients of 2024-11-05 may connect over HTTP+SSE: GET /sse and POST /messages.",
    ),
    Setting(
        "server.shared",
        "shared",
        "switch",
        False,
        None,
        "Whether other processes with the same store serve the same MCP clients, as behind a load balancer: "
        "then any of them can resume a stream, take an answer, and be asked for a task.",
    ),
    Setting(
        "server.name",
        "server_name",
        "text",
        "portbook",
        None,
        "Name of this server for MCP clients.",
    ),
    Setting(
        "server.title",
        "server_title",
        "text",
        None,
        None,
        "Title that MCP clients show to people; by default the name.",
    ),
    Setting(
        "server.version",
        "server_version",
        "text",
        None,
        None,
        "Version of this server for MCP clients; by default the version of Portbook.",
    ),
    Setting(
        "server.instructions",
        "server_instructions",
        "text",
        None,
        None,
        "How to use these tools, sent to MCP clients when they connect; many pass it to their model.",
    ),
    Setting(
        "server.tool_names",
        "tool_names",
        "choice",
        "portable",
        None,
        "Names in the tools/list of MCP: portable ones, which every model API accepts (docs__search), or the "
        "canonical ones (docs.search).",
        choices=get_args(ToolNames),
    ),
    Setting(
        "audit.log_dir",
        "log_dir",
        "path",
        Path("runs"),
        "PORTBOOK_LOG_DIR",
        "Folder for records.",
    ),
    Setting(
        "audit.keep",
        "keep_runs",
        "whole",
        1000,
        None,
        "How many runs to keep records of; older files are removed at start.",
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
        "Whether execution records are also written to standard error.",
    ),
    Setting(
        "audit.arguments",
        "audit_arguments",
        "switch",
        False,
        None,
        "Whether execution records hold the redacted arguments.",
    ),
    Setting(
        "audit.checkpoint_s",
        "checkpoint_s",
        "whole",
        3,
        None,
        "How many seconds records wait for a checkpoint in the store, at most; 0 makes none.",
        0,
        3600,
    ),
    Setting(
        "audit.key",
        "audit_key",
        "path",
        None,
        "PORTBOOK_AUDIT_KEY",
        "File of the key under which records hold digests of arguments, results and claims; "
        "`portbook audit key` creates one.",
    ),
    Setting(
        "audit.ship",
        "ship",
        "choice",
        None,
        None,
        "Where records are also sent, from their files: to the table audit_record of store.url, or to a "
        "receiver by syslog or OpenTelemetry's protocol. By default nowhere.",
        choices=("postgresql", "syslog", "otlp"),
    ),
    Setting(
        "audit.ship_to",
        "ship_to",
        "text",
        None,
        None,
        "Address of the receiver: https://HOST:PORT/v1/logs for otlp; udp://HOST:PORT, tcp://HOST:PORT, "
        "tls://HOST:PORT or unix:/PATH for syslog.",
    ),
    Setting(
        "audit.ship_ca",
        "ship_ca",
        "path",
        None,
        None,
        "File of the certificates that the receiver is trusted by; by default those of the machine.",
    ),
    Setting(
        "audit.ship_authorization",
        "ship_authorization",
        "text",
        None,
        None,
        "Name of the environment variable whose value otlp sends as the Authorization header.",
    ),
    Setting(
        "store.path",
        "store_path",
        "path",
        Path("portbook.db"),
        "PORTBOOK_STORE",
        "Database of approvals, keys and sessions; by default in the folder of the settings file.",
    ),
    Setting(
        "store.url",
        "store_url",
        "text",
        None,
        "PORTBOOK_STORE_URL",
        "PostgreSQL database instead of a file, as postgresql://…, for processes on many machines; "
        "needs `portbook[postgres]`. A password is better kept in PGPASSWORD or ~/.pgpass.",
    ),
    Setting(
        "store.direct_url",
        "store_direct_url",
        "text",
        None,
        "PORTBOOK_STORE_DIRECT_URL",
        "The same database, without the pooler that `store.url` leads to: notifications need a connection "
        "that lasts.",
    ),
    Setting(
        "store.lease_s",
        "store_lease_s",
        "whole",
        15,
        None,
        "How many seconds after its last renewal the lease of a process that runs approved calls is lost, in "
        "PostgreSQL; the same for all processes.",
        2,
        600,
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
        "Whether tracebacks of tools are printed to standard error. For development: they may hold secrets.",
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
        "tool_threads",
        "whole",
        16,
        None,
        "Threads for plain Python functions, in each process that serves.",
        1,
        1024,
    ),
    Setting(
        "docs.enabled",
        "docs_enabled",
        "switch",
        None,
        None,
        "Whether the built-in tool docs.search is served; by default if docs.folder is set, or if there is "
        "no toolset, no HTTP API and no asset library to serve.",
    ),
    Setting(
        "docs.folder",
        "docs_folder",
        "path",
        None,
        "PORTBOOK_DOCS",
        "Folder that docs.search searches; by default this documentation.",
    ),
    Setting(
        "schemas.root",
        "schema_root",
        "path",
        None,
        "PORTBOOK_SCHEMA_ROOT",
        "Folder of contract schemas; a bundle under tools/ replaces the contract of the tool that it names.",
    ),
    Setting(
        "assets.enabled",
        "assets_enabled",
        "switch",
        None,
        None,
        "Whether the asset tools are served; by default if a folder of schemas or examples exists.",
    ),
    Setting(
        "assets.schemas",
        "asset_schemas",
        "path",
        None,
        "SYN_SCHEMAS_DIR",
        "Folder of schemas; by default libs/synesthetic-schemas/jsonschema, if it exists.",
    ),
    Setting(
        "assets.examples",
        "asset_examples",
        "path",
        None,
        "SYN_EXAMPLES_DIR",
        "Folder of examples; by default libs/synesthetic-schemas/examples, if it exists.",
    ),
    Setting(
        "assets.max_batch",
        "asset_max_batch",
        "whole",
        100,
        "MCP_MAX_BATCH",
        "How many assets one validate_many call may hold.",
        1,
    ),
    Setting(
        "assets.redact",
        "asset_redaction",
        "choice",
        "refuse",
        None,
        "What happens if a schema, an example or a patch holds a known secret or a token such as ghp_…: "
        "the call is refused, or (off) the document is given. It is never altered.",
        choices=("refuse", "off"),
    ),
    Setting(
        "assets.backend_url",
        "backend_url",
        "text",
        None,
        "SYN_BACKEND_URL",
        "Address of the backend that populate_backend sends to; without it the tool answers unsupported.",
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
        "Whether request, trace and span ids are derived from the content alone.",
    ),
    Setting(
        "validation.incoming",
        "incoming_validation",
        "choice",
        "enforce",
        None,
        "What to do with a received message that the official MCP schema does not allow.",
        choices=("enforce", "warn", "off"),
    ),
    Setting(
        "validation.outgoing",
        "outgoing_validation",
        "choice",
        "enforce",
        None,
        "What to do with a sent message that the official MCP schema does not allow.",
        choices=("enforce", "warn", "off"),
    ),
    Setting(
        "keys.required",
        "keys_required",
        "switch",
        None,
        None,
        "Whether a call needs a key; by default only if HTTP is bound to more than loopback.",
    ),
    Setting(
        "keys.allow",
        "allowed_keys",
        "keys",
        (),
        None,
        "Accepted keys: name, sha256 of the key, and patterns of the tools that it may call.",
    ),
    _limit(
        "allowed_domains",
        "texts",
        "Destinations of HTTP tools: host, host:port or *.domain; by default only the declared base URLs.",
    ),
    _limit(
        "allowed_networks",
        "texts",
        "Private networks, such as 10.1.0.0/16, that an allowed name may resolve to.",
    ),
    _limit(
        "allowed_methods",
        "texts",
        "HTTP methods that tools may use; by default any.",
    ),
    _limit(
        "effects",
        "texts",
        "Effects that calls may have, of read, write and destructive; by default any. "
        '`effects = ["read"]` makes everything read-only.',
    ),
    _limit(
        "max_payload_bytes",
        "whole",
        "Largest arguments of a call, in bytes of canonical JSON; by default the size of a message.",
    ),
    _limit(
        "max_execution_timeout_ms",
        "whole",
        "Longest deadline of any tool, its own deadline included.",
        1,
        86_400_000,
    ),
    _limit(
        "max_attempts",
        "whole",
        "Highest attempt number of a call, and how often one call may try an HTTP request.",
        1,
    ),
    _limit(
        "max_calls_per_minute",
        "whole",
        "How many calls one caller may make per minute.",
        1,
    ),
    Setting(
        "policy.rate",
        "rate_counting",
        "choice",
        None,
        None,
        "How calls are counted: in each process; over all processes that share the store, in blocks of a "
        "twentieth of the limit that they lease (at most one block for each process beyond the limit); or "
        "exactly, with a write for each call. By default in the process, and leased where several serve: "
        "with server.workers or store.url.",
        choices=("process", "leased", "exact"),
    ),
    _limit(
        "default",
        "choice",
        "What happens to a call that no rule matches.",
    ),
    _limit(
        "approval",
        "choice",
        "Which calls need approval if no rule matches.",
    ),
    _limit(
        "approver",
        "choice",
        "Who may approve: an operator, or the user of the client, if the client supports elicitation.",
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
        "How long an approval is valid, in seconds: for the decision and for the call after it.",
        1,
        31_536_000,
    ),
    Setting(
        "approvals.wait_s",
        "approval_wait_s",
        "whole",
        0,
        None,
        "How long a call waits for a decision, in seconds, if the call does not say.",
        0,
        600,
    ),
    Setting(
        "redaction.enabled",
        "redaction_enabled",
        "switch",
        True,
        None,
        "Whether secrets are redacted in results, errors, records and approvals.",
    ),
    Setting(
        "redaction.keys",
        "redacted_keys",
        "texts",
        (),
        None,
        "Names of members whose values are secret, besides the built-in ones.",
    ),
    Setting(
        "redaction.pointers",
        "redacted_pointers",
        "texts",
        (),
        None,
        "JSON Pointers of secret values; * stands for one segment.",
    ),
    Setting(
        "redaction.patterns",
        "redacted_patterns",
        "texts",
        (),
        None,
        "Regular expressions; a string that contains a match is redacted as a whole.",
    ),
    Setting(
        "redaction.secrets",
        "secret_variables",
        "texts",
        (),
        None,
        "Names of environment variables whose values are redacted everywhere.",
    ),
    Setting(
        "redaction.detectors",
        "detectors",
        "switch",
        True,
        None,
        "Whether text that looks like a key, a token or a card number is redacted.",
    ),
    Setting(
        "redaction.cards",
        "redacted_cards",
        "choice",
        "strings",
        None,
        "Where payment card numbers are redacted: in strings, in which they stand alone or are grouped as on "
        "a card; everywhere, in JSON numbers and next to letters too; or nowhere (off).",
        choices=("strings", "everywhere", "off"),
    ),
    Setting(
        "redaction.mode",
        "redaction_mode",
        "choice",
        "replace",
        None,
        "What replaces a secret.",
        choices=("replace", "remove", "hash"),
    ),
    Setting(
        "envelope.default",
        "envelope_default",
        "choice",
        "off",
        None,
        "What a caller gets by default: the result, an envelope, or an envelope with provenance.",
        choices=("off", "wrap", "provenance"),
    ),
    Setting(
        "envelope.signing_key",
        "signing_key",
        "path",
        None,
        "PORTBOOK_SIGNING_KEY",
        "File of the Ed25519 key that signs envelopes with provenance; `portbook keys signing` creates one.",
    ),
    Setting(
        "http",
        "http_tables",
        "table",
        {},
        None,
        "HTTP APIs, one table each: `[http.NAME]`; see how to expose HTTP APIs.",
    ),
    Setting(
        "mcp",
        "mcp_tables",
        "table",
        {},
        None,
        "MCP servers, one table each: `[mcp.ALIAS]`; see how to put MCP servers behind Portbook.",
    ),
)
