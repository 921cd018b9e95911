"""Resources, prompts, completions and skills: listed, read, governed and recorded like tools."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from portbook.stores.caller_keys import digest_of_key
from support.mcp_http_client import EVERYTHING, run, serving


@pytest.mark.covers("design.offers.unknown")
@pytest.mark.parametrize(("revision", "code"), [("2025-11-25", -32002), ("2026-07-28", -32602)])
def test_a_resource_that_is_not_there_is_named_with_the_revisions_own_code(
    tmp_path: Path, revision: str, code: int
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision)
            error = await client.error("resources/read", {"uri": "test://no-such"})
            assert (error["code"], error["data"]["uri"]) == (code, "test://no-such")
            assert (await client.error("prompts/get", {"name": "no_such"}))["code"] == -32602
            missing = await client.error("prompts/get", {"name": "test_prompt_with_arguments"})
            assert (missing["code"], missing["data"]["reason"]) == (-32602, "BAD_ARGUMENTS")

    run(main())


@pytest.mark.parametrize(
    ("ref", "argument", "values"),
    [
        ({"type": "ref/prompt", "name": "test_prompt_with_arguments"}, ("arg1", "teste"), ["tester"]),
        ({"type": "ref/prompt", "name": "test_prompt_with_arguments"}, ("arg1", "x"), []),
        ({"type": "ref/prompt", "name": "test_prompt_with_arguments"}, ("arg2", "x"), ["X"]),
        ({"type": "ref/prompt", "name": "test_simple_prompt"}, ("none", "x"), []),
        ({"type": "ref/resource", "uri": "test://template/{id}/data"}, ("id", "x"), []),
    ],
)
def test_arguments_are_completed(
    tmp_path: Path, ref: Any, argument: tuple[str, str], values: list[str]
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            for revision in ("2025-06-18", "2026-07-28"):
                client.session = None
                await client.open(revision)
                name, value = argument
                given = {"ref": ref, "argument": {"name": name, "value": value}}
                completion = (await client.result("completion/complete", given))["completion"]
                assert (completion["values"], completion["total"]) == (values, len(values))

    run(main())


RULES = """
[[policy.rules]]
name = "no pictures"
action = "deny"
kinds = ["resource"]
tools = ["test://static-*"]

[[policy.rules]]
name = "one id only"
action = "deny"
kinds = ["resource"]
where = { "/id" = { not = { const = "1" } } }

[[policy.rules]]
name = "no simple prompts"
action = "deny"
kinds = ["prompt"]
tools = ["test_simple_prompt"]
"""


@pytest.mark.covers("design.offers.governed")
def test_policy_decides_on_resources_and_prompts_and_records_name_them(tmp_path: Path) -> None:
    config = tmp_path / "portbook.toml"
    config.write_text(RULES)
    # What is asked for, and the rule that denies it.
    cases: list[tuple[str, dict[str, Any], str | None]] = [
        ("resources/read", {"uri": "test://static-text"}, "no pictures"),
        ("resources/read", {"uri": "test://watched-resource"}, None),
        ("resources/read", {"uri": "test://template/2/data"}, "one id only"),
        ("resources/read", {"uri": "test://template/1/data"}, None),
        ("prompts/get", {"name": "test_simple_prompt"}, "no simple prompts"),
        ("prompts/get", {"name": "test_prompt_with_image"}, None),
        (
            "completion/complete",
            {
                "ref": {"type": "ref/prompt", "name": "test_simple_prompt"},
                "argument": {"name": "a", "value": ""},
            },
            "no simple prompts",
        ),
        ("tools/call", {"name": "test_simple_text"}, None),
    ]

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=config) as client:
            await client.open("2025-11-25")
            for method, params, rule in cases:
                answer = (await client.ask(method, params).ended()).json
                record = client.sink.executions[-1]
                if rule is None:
                    assert "result" in answer, (method, answer)
                    assert record["decision"] == "allow"
                else:
                    assert answer["error"]["code"] == -31403
                    assert answer["error"]["data"]["rule"] == rule
                    assert record["rule"].startswith(rule)
            named = [record["tool_id"] for record in client.sink.executions if record["decision"]]
            assert named == [
                *("mcp.resource:test://static-text", "mcp.resource:test://watched-resource"),
                *["mcp.resource:test://template/{id}/data"] * 2,
                *("mcp.prompt:test_simple_prompt", "mcp.prompt:test_prompt_with_image"),
                *("mcp.completion:test_simple_prompt", "mcp.tool:test_simple_text"),
            ]

    run(main())


def test_a_key_sees_of_resources_and_prompts_what_its_patterns_match(tmp_path: Path) -> None:
    config = tmp_path / "portbook.toml"
    config.write_text(
        f'[[keys.allow]]\nname = "one"\nsha256 = "{digest_of_key("one")}"\n'
        'tools = ["test://static-text", "test_simple_*"]\n'
    )

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=config) as client:
            client.key = "one"
            await client.open("2025-11-25")
            assert [r["uri"] for r in (await client.result("resources/list"))["resources"]] == [
                "test://static-text"
            ]
            assert [p["name"] for p in (await client.result("prompts/list"))["prompts"]] == [
                "test_simple_prompt"
            ]
            hidden = await client.error("resources/read", {"uri": "test://static-binary"})
            there_is_none = await client.error("resources/read", {"uri": "test://no-such"})
            assert {**hidden["data"], "uri": ""} == {**there_is_none["data"], "uri": ""}
            error = await client.error("resources/subscribe", {"uri": "test://watched-resource"})
            assert error["data"]["reason"] == "UNKNOWN_RESOURCE"

    run(main())


def test_a_secret_leaves_through_no_resource_and_no_prompt(tmp_path: Path) -> None:
    tools = tmp_path / "leaky.py"
    tools.write_text(
        "from portbook import Toolset\n"
        "toolset = Toolset('leaky')\n"
        "@toolset.resource('leak://it')\n"
        "def leak() -> dict: return {'password': 'hunter2-canary'}\n"
        "@toolset.prompt\n"
        "def tell() -> str: return 'key AKIAIOSFODNN7EXAMPLE'\n"
    )

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open("2025-11-25")
            prompt = await client.result("prompts/get", {"name": "tell"})
            assert "AKIAIOSFODNN7EXAMPLE" not in json.dumps(prompt)
            assert "canary" not in json.dumps(client.sink.executions)

    run(main())


# -- what comes and goes


def test_what_is_taken_out_is_neither_listed_nor_called_until_it_is_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2025-11-25")
            [toolset] = client.served.toolsets
            for kind, name, method, member in (
                ("tool", "greet", "tools/list", "tools"),
                ("prompt", "test_simple_prompt", "prompts/list", "prompts"),
            ):
                toolset.disable(name, kind)
                assert name not in {item["name"] for item in (await client.result(method))[member]}
                call = "tools/call" if kind == "tool" else "prompts/get"
                assert (await client.error(call, {"name": name}))["code"] == -32602
                toolset.enable(name, kind)
                assert name in {item["name"] for item in (await client.result(method))[member]}

    run(main())


# -- skills


@pytest.mark.covers("design.skills")
def test_a_skill_is_listed_with_every_file_and_each_can_be_read(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            [skill] = (await client.result("skills/list"))["skills"]
            assert skill["uri"] == "skill://pdf-processing/SKILL.md"
            assert skill["frontmatter"]["metadata"] == {"version": "1.0"}
            assert len(skill["resources"]) == 2
            for resource in skill["resources"]:
                read = await client.result("resources/read", {"uri": resource["uri"]})
                data = read["contents"][0]["text"].encode()
                assert resource["size"] == len(data)
                assert resource["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
            got = await client.result("skills/get", {"uri": skill["uri"]})
            assert got["skill"] == skill
            children = (await client.result("resources/directory/read", {"uri": "skill://pdf-processing"}))[
                "resources"
            ]
            assert {child["uri"]: child["mimeType"] for child in children} == {
                "skill://pdf-processing/SKILL.md": "text/markdown",
                "skill://pdf-processing/references": "inode/directory",
            }
            for method, uri in (
                ("skills/get", "skill://no-such/SKILL.md"),
                ("resources/directory/read", "skill://pdf-processing/SKILL.md"),
                ("resources/directory/read", "test://"),
            ):
                assert (await client.error(method, {"uri": uri}))["code"] == -32602

    run(main())


def test_a_server_without_skills_does_not_know_their_methods(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2026-07-28")
            for method in ("skills/list", "prompts/list", "resources/list", "completion/complete"):
                assert (await client.error(method))["code"] == -32601
            capabilities = (await client.result("server/discover"))["capabilities"]
            assert capabilities.keys() == {"tools", "logging", "extensions"}

    run(main())
