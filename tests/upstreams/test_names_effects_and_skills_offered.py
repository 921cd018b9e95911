"""Skills of a server: their files are resources that know what they have to be."""

from __future__ import annotations

from typing import Any

from portbook.upstreams.listed_definitions import ObservedDefinition
from portbook.upstreams.mcp_table import DeclaredUpstream
from portbook.upstreams.names_effects_and_skills import SkillFile, specs_of

URI, FILE = "skill://forms/SKILL.md", "skill://forms/fields.md"
WORDS: Any = {"name": "forms", "description": "Fill in forms"}
ENTRY: Any = {
    "uri": URI,
    "frontmatter": WORDS,
    "resources": [{"uri": URI, "digest": "sha256:a", "size": 7}, {"uri": FILE, "digest": "sha256:b"}],
}
SKILL = ObservedDefinition("box", "skill", URI, ENTRY)


def specs(*served: ObservedDefinition) -> dict[str, Any]:
    made = specs_of(DeclaredUpstream("box", "stdio"), served, completes=False)
    return {spec.name: spec for spec in made}


def test_files_that_no_list_has_are_resources_all_the_same() -> None:
    found = specs(SKILL)
    assert found[URI].skill == ENTRY
    assert (found[URI].description, found[URI].shown) == ("Fill in forms", {"name": "forms", "size": 7})
    assert (found[FILE].skill, found[FILE].shown) == (None, {"name": "fields.md"})
    assert found[URI].upstream.file == SkillFile(URI, "sha256:a", 7, WORDS)
    assert found[FILE].upstream.file == SkillFile(FILE, "sha256:b", None, None)


def test_a_listed_file_keeps_its_own_definition() -> None:
    listed = ObservedDefinition(
        "box", "resource", FILE, {"uri": FILE, "name": "Fields", "mimeType": "text/x"}
    )
    other = ObservedDefinition("box", "resource", "box://other", {"uri": "box://other", "name": "other"})
    found = specs(listed, other, SKILL)
    assert found[FILE].shown == {"name": "Fields", "mimeType": "text/x"}
    assert found[FILE].upstream.file is not None
    assert found["box://other"].upstream.file is None
    assert sorted(found) == ["box://other", URI, FILE]
