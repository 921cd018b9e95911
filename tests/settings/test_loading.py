"""Settings: where they come from, who wins, and what is said about those that cannot be used."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from portbook.settings import CONFIG_NAME, SETTINGS, BadSettings, load_settings
from portbook.settings.loading import with_policy
from portbook.settings.toml_file import parse_toml
from portbook.stores.caller_keys import AllowedKey
from support.portbook_process import environment
from support.settings_files import BY_KEY, case, complaint, line, load, value_of

DIGEST = hashlib.sha256(b"a key").hexdigest()


@pytest.mark.parametrize(
    ("key", "in_file", "in_environment", "as_flag", "expected"),
    [
        case("text", "server.host", '"file"', "env", "flag", ("file", "env", "flag")),
        case("whole number", "server.port", "1", "2", 3, (1, 2, 3)),
        case("address", "schema_override_uri", '"http:file"', "env", "flag", ("http:file", "env", "flag")),
        case(
            "revision", "schema_override_revision", '"2024-11-05"', "2025-03-26", "2025-06-18",
            ("2024-11-05", "2025-03-26", "2025-06-18"),
        ),
        case("digest", "schema_override_sha256", '"file"', "env", "flag", ("file", "env", "flag")),
        case(
            "path", "audit.log_dir", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "docs", "docs.folder", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "schemas", "schemas.root", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "signing key", "envelope.signing_key", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "store", "store.path", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "database", "store.url", '"postgresql://file"', "postgresql://env", "postgresql://flag",
            ("postgresql://file", "postgresql://env", "postgresql://flag"),
        ),
        case(
            "database without pooler", "store.direct_url", '"postgresql://file"', "postgresql://env",
            "postgresql://flag", ("postgresql://file", "postgresql://env", "postgresql://flag"),
        ),
        case(
            "assets", "assets.schemas", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "examples", "assets.examples", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case(
            "audit key", "audit.key", '"/file"', "/env", Path("/flag"),
            (Path("/file"), Path("/env"), Path("/flag")),
        ),
        case("workers", "server.workers", "1", "auto", 3, (1, "auto", 3)),
        case("batch", "assets.max_batch", "1", "2", 3, (1, 2, 3)),
        case("backend", "assets.backend_url", '"file"', "env", "flag", ("file", "env", "flag")),
        case("its path", "assets.backend_path", '"file"', "env", "flag", ("file", "env", "flag")),
    ],
)  # fmt: skip
def test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default(
    key: str, in_file: str, in_environment: str, as_flag: object, expected: tuple[object, ...], tmp_path: Path
) -> None:
    variable = BY_KEY[key].env
    assert variable is not None
    flag = {key.replace(".", "__"): as_flag}
    assert value_of(load(tmp_path), key) == BY_KEY[key].default
    text, environ = line(key, in_file), {variable: in_environment}
    from_file, from_environment, from_flag = expected
    assert value_of(load(tmp_path, text), key) == from_file
    assert value_of(load(tmp_path, text, environ), key) == from_environment
    assert value_of(load(tmp_path, text, environ, **flag), key) == from_flag


def test_a_variable_of_another_contract_that_is_empty_counts_as_not_set(tmp_path: Path) -> None:
    settings = load(tmp_path, environ={"SYN_BACKEND_URL": "", "SYN_SCHEMAS_DIR": " ", "MCP_MAX_BATCH": ""})
    assert (settings.backend_url, settings.asset_schemas, settings.asset_max_batch) == (None, None, 100)
    assert "must be a string that is not empty" in complaint(tmp_path, environ={"PORTBOOK_HOST": ""})


def test_every_setting_with_a_variable_is_in_the_table_above() -> None:
    (mark,) = test_a_flag_beats_the_environment_which_beats_the_file_which_beats_the_default.pytestmark  # type: ignore[attr-defined]
    assert {row.values[0] for row in mark.args[1]} == {setting.key for setting in SETTINGS if setting.env}


@pytest.mark.parametrize(
    ("key", "in_file", "from_file", "as_flag"),
    [
        case("audit.keep", "audit.keep", "3", 3, 4),
        case("execution.timeout_ms", "execution.timeout_ms", "3", 3, 4),
        case("execution.workers", "execution.workers", "3", 3, 4),
        case("docs.enabled", "docs.enabled", "false", False, True),
        case("ids.deterministic", "ids.deterministic", "true", True, False),
        case("keys.required", "keys.required", "true", True, False),
        case("approvals.wait_s", "approvals.wait_s", "3", 3, 4),
        case("python.tracebacks", "python.tracebacks", "true", True, False),
        case("python.toolsets", "python.toolsets", '["a.b", "c"]', ("a.b", "c"), ("d",)),
        case("audit.on_failure", "audit.on_failure", '"warn"', "warn", "refuse"),
        case("policy.allowed_domains", "policy.allowed_domains", "[]", (), ("a",)),
        case("policy.max_attempts", "policy.max_attempts", "3", 3, 4),
        case("policy.approval", "policy.approval", '"writes"', "writes", "always"),
        case("redaction.mode", "redaction.mode", '"hash"', "hash", "remove"),
    ],
)
def test_a_setting_without_a_variable_comes_from_file_or_flag(
    key: str, in_file: str, from_file: object, as_flag: object, tmp_path: Path
) -> None:
    assert value_of(load(tmp_path, line(key, in_file)), key) == from_file
    assert value_of(load(tmp_path, line(key, in_file), **{key.replace(".", "__"): as_flag}), key) == as_flag


def test_a_flag_that_was_not_given_is_none_and_decides_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, line("server.port", "1"), server__port=None).port == 1


def test_variables_of_others_are_not_looked_at(tmp_path: Path) -> None:
    assert load(tmp_path, None, {"HOST": "x", "PORT": "y", "PORTBOOK_NOTHING": "z"}) == load(tmp_path)


@pytest.mark.covers("002.settings.line")
@pytest.mark.parametrize(
    ("text", "at", "named", "hint"),
    [
        case("a key", "[server]\nprot = 1", 2, "server.prot", "did you mean server.port?"),
        case("a key further down", "\n# x\n[server]\nport = 1\n\nprot = 1", 6, "server.prot", "server.port?"),
        case("a section", "[sever]\nport = 1", 1, "sever", "did you mean server?"),
        case("an empty section", "[sever]", 1, "sever", "did you mean server?"),
        case("an array of tables", '\n[[keys.alow]]\nname = "a"', 2, "keys.alow", "did you mean keys.allow?"),
        case("a section of a section", "\n\n[sever.sub]\nport = 1", 3, "sever", "did you mean server?"),
        case("a plural", "[key]\nrequired = true", 1, "key", "did you mean keys?"),
        case(
            "a limit",
            "[policy]\nmax_attempt = 1",
            2,
            "policy.max_attempt",
            "did you mean policy.max_attempts?",
        ),
        case(
            "a dash",
            "[execution]\ntimeout-ms = 1",
            2,
            "execution.timeout-ms",
            "did you mean execution.timeout_ms?",
        ),
        case("another case", "[Server]\nport = 1", 1, "Server", "did you mean server?"),
        case("nothing near", "[server]\nxyzzy = 1", 2, "server.xyzzy", "docs/reference/settings.md lists"),
        case("nothing near, without a section", "xyzzy = 1", 1, "xyzzy", "docs/reference/settings.md lists"),
        case("a key without a section", "port = 1", 1, "port", "did you mean server.port?"),
        case(
            "a setting without a section",
            "schema_override_url = 'x'",
            1,
            "schema_override_url",
            "schema_override_uri?",
        ),
        case(
            "such a setting in a section",
            "[server]\nschema_override_uri = 'x'",
            2,
            "server.schema_override_uri",
            "did you mean schema_override_uri?",
        ),
        case(
            "the wrong section", "[server]\nlog_dir = 'x'", 2, "server.log_dir", "did you mean audit.log_dir?"
        ),
    ],
)
def test_an_unknown_setting_stops_the_start_with_its_line_and_a_suggestion(
    text: str, at: int, named: str, hint: str, tmp_path: Path
) -> None:
    said = complaint(tmp_path, text)
    assert said.startswith(f"{CONFIG_NAME}:{at}:1: unknown setting '{named}'; ")
    assert hint in said


@pytest.mark.parametrize(
    ("text", "at"),
    [("server = 1", 1), ("\nserver = []", 2), ("[[server]]\nport = 1", 1), ('# x\nserver = "x"', 2)],
)
def test_a_section_that_is_no_table_is_told_how_to_be_one(text: str, at: int, tmp_path: Path) -> None:
    assert (
        complaint(tmp_path, text) == f"{CONFIG_NAME}:{at}:1: server must be a table; start it with [server]"
    )


@pytest.mark.parametrize(
    "text", ["", " ", "x", "1.5", "-1", "+1", " 1", "1 ", "0x10", "1_0", "65536", "٣", "1e3", "9" * 5000]
)
def test_a_variable_that_is_no_whole_number_is_named_in_the_refusal(text: str, tmp_path: Path) -> None:
    said = complaint(tmp_path, None, {"PORTBOOK_PORT": text})
    assert said == "$PORTBOOK_PORT: server.port must be a whole number from 0 to 65535"


@pytest.mark.parametrize(
    "variable",
    ["PORTBOOK_HOST", "PORTBOOK_LOG_DIR", "PORTBOOK_DOCS", "PORTBOOK_SCHEMA_ROOT", "PORTBOOK_STORE"],
)
def test_an_empty_variable_is_not_the_same_as_none(variable: str, tmp_path: Path) -> None:
    assert complaint(tmp_path, None, {variable: ""}).startswith(f"${variable}: ")


def test_a_flag_of_the_wrong_type_is_refused_too(tmp_path: Path) -> None:
    assert complaint(tmp_path, server__port=70_000).startswith("command line: server.port must be ")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        case("no value", b"[server]\nport =", "2:7: not TOML: "),
        case("the same key twice", b"[server]\nport = 1\nport = 2", "3:9: not TOML: "),
        case("the same section twice", b"[server]\nport = 1\n[server]\nhost = 'x'", "3:8: not TOML: "),
        case("not UTF-8", b"[server]\nhost = '\xff'", "2:9: not UTF-8; "),
        case("JSON", b'{"server": {"port": 1}}', "1:1: not TOML: "),
    ],
)
def test_a_file_that_is_not_toml_is_refused_with_its_place(
    content: bytes, place: str, tmp_path: Path
) -> None:
    (tmp_path / CONFIG_NAME).write_bytes(content)
    assert complaint(tmp_path).startswith(f"{CONFIG_NAME}:{place}")


def test_all_mistakes_of_a_file_a_variable_and_a_flag_are_told_at_once(tmp_path: Path) -> None:
    text = "[server]\nport = 'x'\nprot = 1\n[audit]\nkeep = -1\n"
    said = complaint(tmp_path, text, {"PORTBOOK_HOST": ""}, python__tracebacks="yes").splitlines()
    assert [line.partition(": ")[0] for line in said] == [
        f"{CONFIG_NAME}:2:1",
        f"{CONFIG_NAME}:3:1",
        f"{CONFIG_NAME}:5:1",
        "$PORTBOOK_HOST",
        "command line",
    ]


@pytest.mark.parametrize("named_by", ["argument", "variable"])
def test_a_named_file_that_is_not_there_stops_the_start(named_by: str, tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    config, environ = (missing, {}) if named_by == "argument" else (None, {"PORTBOOK_CONFIG": str(missing)})
    with pytest.raises(BadSettings, match="cannot be read: No such file or directory") as raised:
        load_settings(config, environ, {}, tmp_path)
    assert str(raised.value).startswith("missing.toml: ")


def test_a_folder_in_the_place_of_the_file_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="cannot be read: Is a directory"):
        load_settings(tmp_path, {}, {}, tmp_path)


def test_the_file_is_the_named_one_then_the_variables_then_the_folders(tmp_path: Path) -> None:
    for name, port in (("named.toml", 1), ("variable.toml", 2), (CONFIG_NAME, 3)):
        (tmp_path / name).write_text(line("server.port", str(port)))
    environ = {"PORTBOOK_CONFIG": str(tmp_path / "variable.toml")}
    assert load_settings(tmp_path / "named.toml", environ, {}, tmp_path).port == 1
    assert load_settings(None, environ, {}, tmp_path).port == 2
    assert load_settings(None, {"PORTBOOK_CONFIG": ""}, {}, tmp_path).port == 3
    assert load_settings(None, {}, {}, tmp_path).config == tmp_path / CONFIG_NAME
    assert load_settings(None, {}, {}, tmp_path / "elsewhere").config is None


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        case("records", '[audit]\nlog_dir = "logs"', "audit.log_dir", "{folder}/logs"),
        case("docs", '[docs]\nfolder = "../docs"', "docs.folder", "{folder}/../docs"),
        case("schemas", '[schemas]\nroot = "."', "schemas.root", "{folder}"),
        case("an absolute path", '[audit]\nlog_dir = "/var/log"', "audit.log_dir", "/var/log"),
        case("the store", '[store]\npath = "a/b.db"', "store.path", "{folder}/a/b.db"),
        case("the store, unnamed, lies beside the file", "", "store.path", "{folder}/portbook.db"),
    ],
)
def test_a_relative_path_in_the_file_starts_where_the_file_stands(
    text: str, key: str, expected: str, tmp_path: Path
) -> None:
    folder = tmp_path / "conf"
    folder.mkdir()
    (folder / "any.toml").write_text(text)
    settings = load_settings(folder / "any.toml", {}, {}, tmp_path)
    assert value_of(settings, key) == Path(expected.format(folder=folder))


def test_a_tool_file_starts_where_the_file_stands_and_a_module_nowhere(tmp_path: Path) -> None:
    settings = load(tmp_path, '[python]\ntoolsets = ["orders.py", "sub/a.py", "/abs/b.py", "package.module"]')
    assert settings.toolsets == (
        f"{tmp_path}/orders.py",
        f"{tmp_path}/sub/a.py",
        "/abs/b.py",
        "package.module",
    )


def test_a_relative_path_in_a_variable_or_a_flag_starts_where_portbook_was_started(tmp_path: Path) -> None:
    settings = load(
        tmp_path, None, {"PORTBOOK_DOCS": "docs"}, audit__log_dir="logs", python__toolsets=("a.py",)
    )
    assert (settings.docs_folder, settings.log_dir, settings.toolsets) == (
        Path("docs"),
        Path("logs"),
        ("a.py",),
    )


KEY = f'name = "ada"\nsha256 = "{DIGEST}"\n'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        case("one", f"[[keys.allow]]\n{KEY}", (AllowedKey("ada", DIGEST),)),
        case("a table", f"[keys.allow]\n{KEY}", (AllowedKey("ada", DIGEST),)),
        case(
            "two",
            f'[[keys.allow]]\n{KEY}[[keys.allow]]\nname = "bob"\nsha256 = "{"A" * 64}"',
            (AllowedKey("ada", DIGEST), AllowedKey("bob", "A" * 64)),
        ),
        case("none", "[keys]\nallow = []", ()),
        case(
            "for some tools",
            f'[[keys.allow]]\n{KEY}tools = ["orders.*", "look"]',
            (AllowedKey("ada", DIGEST, ("orders.*", "look")),),
        ),
        case("for none", f"[[keys.allow]]\n{KEY}tools = []", (AllowedKey("ada", DIGEST, ()),)),
    ],
)
def test_allowed_keys_are_a_name_a_digest_and_the_tools_that_they_are_for(
    text: str, expected: tuple[AllowedKey, ...], tmp_path: Path
) -> None:
    assert load(tmp_path, text).allowed_keys == expected


SHAPE = "each [[keys.allow]] needs name and sha256, and may have tools"
PATTERNS = "tools must be a list of patterns"
DIGITS = "sha256 must be 64 hexadecimal digits (sha256 of the key)"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        case("no digest", '[[keys.allow]]\nname = "ada"', SHAPE),
        case("no name", f'[[keys.allow]]\nsha256 = "{DIGEST}"', SHAPE),
        case("something else", f'[[keys.allow]]\n{KEY}key = "x"', "[[keys.allow]]; use name, sha256, tools"),
        case("a name that is no string", f'[[keys.allow]]\nname = 1\nsha256 = "{DIGEST}"', SHAPE),
        case("a digest that is no string", '[[keys.allow]]\nname = "ada"\nsha256 = 1', SHAPE),
        case("a string", '[keys]\nallow = "ada"', SHAPE),
        case("strings", '[keys]\nallow = ["ada"]', SHAPE),
        case("a number", "[keys]\nallow = 5", SHAPE),
        case("the second of two", f'[[keys.allow]]\n{KEY}[[keys.allow]]\nname = "bob"', SHAPE),
        case("a short digest", f'[[keys.allow]]\nname = "ada"\nsha256 = "{DIGEST[1:]}"', DIGITS),
        case("a long digest", f'[[keys.allow]]\nname = "ada"\nsha256 = "{DIGEST}0"', DIGITS),
        case("the key itself", '[[keys.allow]]\nname = "ada"\nsha256 = "the key itself"', DIGITS),
        case("digits of others", f'[[keys.allow]]\nname = "ada"\nsha256 = "{"٣" * 64}"', DIGITS),
        case("a line break after it", f'[[keys.allow]]\nname = "ada"\nsha256 = "{DIGEST}\\n"', DIGITS),
        case("tools that are no list", f'[[keys.allow]]\n{KEY}tools = "*"', PATTERNS),
        case("a number as a pattern", f"[[keys.allow]]\n{KEY}tools = [1]", PATTERNS),
        case("a bad pattern", f'[[keys.allow]]\n{KEY}tools = ["Look"]', "author's name has capitals"),
    ],
)  # fmt: skip
def test_an_allowed_key_of_another_shape_is_refused(text: str, said: str, tmp_path: Path) -> None:
    found = complaint(tmp_path, text)
    assert re.match(rf"{re.escape(CONFIG_NAME)}:[1234]:\d+: ", found)
    assert found.endswith(said)
    assert "the key itself" not in found


def test_importing_the_settings_reads_neither_file_nor_environment(tmp_path: Path) -> None:
    (tmp_path / CONFIG_NAME).write_text("not TOML at all")
    done = subprocess.run(
        [sys.executable, "-c", "import sys, portbook.settings; print('tomllib' in sys.modules)"],
        cwd=tmp_path,
        env=environment(PORTBOOK_PORT="not a port", PORTBOOK_CONFIG="missing.toml"),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert (done.stdout, done.stderr) == (b"False\n", b"")


def test_a_path_of_an_override_in_the_file_starts_in_the_files_folder(tmp_path: Path) -> None:
    settings = load(tmp_path, line("schema_override_uri", '"mcp/schema.json"'))
    assert settings.schema_override_uri == str(tmp_path / "mcp/schema.json")
    settings = load(tmp_path, line("schema_override_uri", '"file:///mcp/schema.json"'))
    assert settings.schema_override_uri == "file:///mcp/schema.json"


RULES = """\
[policy]
approval = "writes"

[[policy.rules]]
name = "a"

[[policy.rules]]
name = "b"
action = 5

[http.orders.tools.get]
method = "GET"
"""


@pytest.mark.parametrize(
    ("path", "place", "said"),
    [
        case("a setting", ("policy", "approval"), 2, "policy.approval"),
        case("a rule", ("policy", "rules", 1), 7, "policy.rules[1]"),
        case("a member of a rule", ("policy", "rules", 1, "action"), 9, "policy.rules[1].action"),
        case(
            "a member that is missing: its rule",
            ("policy", "rules", 0, "action"),
            4,
            "policy.rules[0].action",
        ),
        case("a list: its first table", ("policy", "rules"), 4, "policy.rules"),
        case("a section without a head: what is in it", ("http", "orders"), 11, "http.orders"),
        case("a section that is missing: the file", ("server", "port"), 1, "server.port"),
    ],
)
def test_settings_know_the_file_and_line_of_their_keys(
    path: tuple[str | int, ...], place: int, said: str, tmp_path: Path
) -> None:
    settings = load(tmp_path, RULES)
    assert settings.place_of(*path) == f"{CONFIG_NAME}:{place}"
    complained = settings.complain(path, "is wrong")
    assert isinstance(complained, BadSettings)
    assert str(complained) == f"{CONFIG_NAME}:{place}:1: {said} is wrong"


def test_without_a_file_every_setting_is_a_default(tmp_path: Path) -> None:
    assert load(tmp_path).place_of("policy", "approval") == "default"


def test_what_a_file_names_is_looked_for_beside_it(tmp_path: Path) -> None:
    assert load(tmp_path).folder == Path()
    assert load(tmp_path, "").folder == tmp_path


def test_rules_and_apis_are_tables_as_they_stand_in_the_file(tmp_path: Path) -> None:
    settings = load(tmp_path, RULES)
    assert settings.policy_rules == ({"name": "a"}, {"name": "b", "action": 5})
    assert settings.http_tables == {"orders": {"tools": {"get": {"method": "GET"}}}}


@pytest.mark.parametrize(
    ("environ", "flags", "place"),
    [
        ({}, {}, "named.toml:2"),
        ({"PORTBOOK_PORT": "1"}, {}, "$PORTBOOK_PORT"),
        ({"PORTBOOK_PORT": "1"}, {"server.port": 2}, "command line"),
    ],
    ids=["file", "variable", "flag"],
)
def test_a_setting_is_complained_of_where_it_is_given(
    environ: dict[str, str], flags: dict[str, int], place: str, tmp_path: Path
) -> None:
    config = tmp_path / "named.toml"
    config.write_text("[server]\nport = 3\n")
    settings = load_settings(config, environ, flags, None)
    assert settings.place_of("server", "port") == place
    said = str(settings.complain(("server", "port"), "is taken"))
    assert said.endswith(f"{place}{':1' if place.startswith('named') else ''}: server.port is taken")
    assert load_settings(None, {}, {}, None).place_of("server", "port") == "default"


def test_a_policy_from_elsewhere_replaces_that_of_the_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / CONFIG_NAME
    path.write_text('[server]\nport = 1\n[policy]\ndefault = "deny"\nmax_attempts = 3\n')
    settings = load_settings(path, {}, {"policy.max_payload_bytes": 9}, tmp_path)
    text = '[server]\nport = 2\n[policy]\n[[policy.rules]]\nname = "no"\naction = "deny"\n'
    changed = with_policy(settings, parse_toml(text, "proposal"))
    assert (changed.port, changed.limits.default, changed.limits.max_attempts) == (1, "allow", None)
    assert changed.limits.max_payload_bytes == 9
    assert [rule["name"] for rule in changed.policy_rules] == ["no"]
    assert changed.place_of("policy", "rules", 0) == f"{CONFIG_NAME}:4"
    with pytest.raises(BadSettings, match=r"proposal:2:1: unknown setting 'policy\.defalt'"):
        with_policy(settings, parse_toml('[policy]\ndefalt = "deny"\n', "proposal"))
