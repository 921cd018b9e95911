"""A file of a skill is the one that its entry describes, or none."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from portbook.upstreams.names_effects_and_skills import SkillFile, files_of

TEXT = "---\nname: forms\ndescription: Fill in forms\n---\n\nBody.\n"
WORDS: Any = {"name": "forms", "description": "Fill in forms"}
URI, OTHER = "skill://forms/SKILL.md", "skill://forms/logo.png"


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def manifest(text: str = TEXT, **changed: Any) -> SkillFile:
    said: dict[str, Any] = {"digest": digest(text.encode()), "size": len(text.encode()), "frontmatter": WORDS}
    return SkillFile(URI, **{**said, **changed})


def test_the_files_of_an_entry_are_those_with_a_digest_and_one_of_them_has_frontmatter() -> None:
    listed = [
        {"uri": URI, "digest": "sha256:a", "size": 3},
        {"uri": OTHER, "digest": "sha256:b"},
        {"uri": "skill://forms/unknown"},
        "no file",
    ]
    entry: Any = {"uri": URI, "frontmatter": WORDS, "resources": listed}
    assert list(files_of(entry)) == [
        SkillFile(URI, "sha256:a", 3, WORDS),
        SkillFile(OTHER, "sha256:b", None, None),
    ]
    assert list(files_of({"uri": URI})) == []


def test_what_was_listed_is_accepted_as_text_and_as_base64() -> None:
    data = b"\x89PNG\x00"
    assert manifest().problem_in([{"uri": URI, "text": TEXT}]) is None
    picture = SkillFile(OTHER, digest(data), 5, None)
    assert picture.problem_in([{"uri": OTHER, "blob": base64.b64encode(data).decode()}]) is None


@pytest.mark.parametrize(
    ("file", "contents", "problem"),
    [
        (manifest(), [{"text": TEXT.replace("Body", "Evil")}], "digest"),
        (manifest(), [{"text": TEXT + "more\n"}], "size"),
        (manifest(size=None), [{"text": TEXT + "more\n"}], "digest"),
        (manifest(digest="md5:1"), [{"text": TEXT}], "digest"),
        (manifest(frontmatter={**WORDS, "description": "Other"}), [{"text": TEXT}], "frontmatter"),
        (manifest(), [], "one content"),
        (manifest(), [{"text": TEXT}, {"text": TEXT}], "one content"),
        (manifest(), [{"blob": "*"}], "base64"),
        (manifest(), [{}], "base64"),
    ],
)
def test_anything_else_is_a_problem(file: SkillFile, contents: list[Any], problem: str) -> None:
    assert problem in (file.problem_in(contents) or "")


def test_frontmatter_beyond_what_we_read_is_left_to_the_digest() -> None:
    text = "---\nname: &anchor forms\n---\n"
    assert manifest(text).problem_in([{"text": text}]) is None
