"""The table of settings: each has its default, its type and its bounds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from portbook.policy import Limits
from portbook.settings import CONFIG_NAME, SETTINGS, Setting, Settings
from support.settings_files import BY_KEY, case, complaint, line, load, value_of


def test_the_table_of_settings_and_the_values_name_each_other() -> None:
    apart = {"config", "is_given", "file", "more_toolsets", "origins", "limits"}
    fields = set(Settings._fields) - apart
    fields |= {f"limits.{name}" for name in Limits._fields}
    assert sorted(setting.field for setting in SETTINGS) == sorted(fields)
    assert len(BY_KEY) == len(SETTINGS)
    variables = [setting.env for setting in SETTINGS if setting.env]
    assert len(set(variables)) == len(variables)
    # Beside our own, those that the asset specification and its later revisions name.
    assert all(re.fullmatch(r"(PORTBOOK|SYN|MCP)_[A-Z0-9_]+", variable) for variable in variables)
    assert all(setting.meaning.endswith(".") for setting in SETTINGS)


def test_without_file_environment_and_flags_every_setting_has_its_default(tmp_path: Path) -> None:
    settings = load(tmp_path)
    assert {setting.key: value_of(settings, setting.key) for setting in SETTINGS} == {
        "schema_override_uri": None,
        "schema_override_revision": "2026-07-28",
        "schema_override_sha256": None,
        "server.host": "127.0.0.1",
        "server.port": 8765,
        "server.workers": 1,
        "server.allowed_hosts": (),
        "server.allowed_origins": (),
        "server.socket": None,
        "server.tls": None,
        "server.trusted_proxies": (),
        "server.legacy_sse": False,
        "server.shared": False,
        "server.name": "portbook",
        "server.title": None,
        "server.version": None,
        "server.instructions": None,
        "server.tool_names": "portable",
        "audit.log_dir": Path("runs"),
        "audit.keep": 1000,
        "audit.on_failure": "refuse",
        "audit.stderr": False,
        "audit.arguments": False,
        "audit.checkpoint_s": 3,
        "audit.key": None,
        "audit.ship": None,
        "audit.ship_to": None,
        "audit.ship_ca": None,
        "audit.ship_authorization": None,
        "store.path": Path("portbook.db"),
        "store.url": None,
        "store.direct_url": None,
        "store.lease_s": 15,
        "python.toolsets": (),
        "python.tracebacks": False,
        "execution.timeout_ms": 30_000,
        "execution.workers": 16,
        "docs.enabled": None,
        "docs.folder": None,
        "schemas.root": None,
        "assets.enabled": None,
        "assets.schemas": None,
        "assets.examples": None,
        "assets.max_batch": 100,
        "assets.redact": "refuse",
        "assets.backend_url": None,
        "assets.backend_path": "/synesthetic-assets/",
        "ids.deterministic": False,
        "validation.incoming": "enforce",
        "validation.outgoing": "enforce",
        "keys.required": None,
        "keys.allow": (),
        "policy.allowed_domains": None,
        "policy.allowed_networks": (),
        "policy.allowed_methods": None,
        "policy.effects": None,
        "policy.max_payload_bytes": None,
        "policy.max_execution_timeout_ms": None,
        "policy.max_attempts": None,
        "policy.max_calls_per_minute": None,
        "policy.rate": None,
        "policy.default": "allow",
        "policy.approval": "never",
        "policy.approver": "operator",
        "policy.require_redaction": False,
        "policy.rules": (),
        "approvals.expires_s": 3600,
        "approvals.wait_s": 0,
        "redaction.enabled": True,
        "redaction.keys": (),
        "redaction.pointers": (),
        "redaction.patterns": (),
        "redaction.secrets": (),
        "redaction.detectors": True,
        "redaction.cards": "strings",
        "redaction.mode": "replace",
        "envelope.default": "off",
        "envelope.signing_key": None,
        "http": {},
        "mcp": {},
    }
    assert settings.config is None


WRONG = {
    "text": ["5", "true", '""', '["x"]', "{ a = 1 }", "1979-05-27"],
    "address": ["5", "true", '""', '["x"]'],
    "path": ["5", "true", '""', '["x"]'],
    "count": ["true", "1.5", '"1"', "[1]", "-1", "0", "257", '"many"'],
    "whole": ["true", "1.5", "1.0", '"1"', "[1]", "-1", "nan", "99999999999"],
    "switch": ["1", "0", '"true"', "[]"],
    "texts": ['"x"', "[1]", '["x", 1]', "1", '[["x"]]'],
    "choice": ["1", "true", '""', '"never ever"', '["enforce"]'],
    "tables": ['"x"', "1", "[1]", '["x"]', "{ name = 'x' }"],
    "table": ['"x"', "1", "[]", "[1]"],
    "certificate": [
        '"x"',
        "{}",
        '{ cert = "a" }',
        '{ cert = "a", key = "" }',
        '{ cert = "a", key = "b", c = 1 }',
    ],
}


def test_every_kind_of_setting_has_values_of_the_wrong_type() -> None:
    assert {setting.kind for setting in SETTINGS} == {*WRONG, "keys"}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        case(f"{setting.key} = {value}", setting, value)
        for setting in SETTINGS
        for value in WRONG.get(setting.kind, [])
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_file_key_and_what_it_must_be(
    setting: Setting, value: str, tmp_path: Path
) -> None:
    text = line(setting.key, value)
    where = f"{CONFIG_NAME}:{text.count(chr(10))}:"
    said = complaint(tmp_path, text)
    assert re.fullmatch(rf"{re.escape(where)}\d+: {re.escape(setting.key)} must be [a-z].+", said)


@pytest.mark.parametrize("setting", [row for row in SETTINGS if row.kind == "whole"], ids=lambda row: row.key)
def test_a_whole_number_has_bounds_that_are_allowed_themselves(setting: Setting, tmp_path: Path) -> None:
    for value in (setting.minimum, setting.maximum):
        assert value_of(load(tmp_path, line(setting.key, str(value))), setting.key) == value
    for value in (setting.minimum - 1, setting.maximum + 1):
        said = complaint(tmp_path, line(setting.key, str(value)))
        assert f"a whole number from {setting.minimum} to {setting.maximum}" in said
