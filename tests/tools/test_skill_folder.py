from __future__ import annotations

from pathlib import Path

import pytest

from portbook.tools.skill_folder import specs_from_skills
from portbook.tools.spec import BadTool


def a_skill(
    folder: Path, name: str = "a-skill", head: str = "name: a-skill\ndescription: It does things."
) -> Path:
    skill = folder / name
    skill.mkdir()
    (skill / "SKILL.md").write_text(f"---\n{head}\n---\nHello.\n")
    return skill


def test_every_file_of_a_skill_is_a_resource_but_hidden_ones(tmp_path: Path) -> None:
    skill = a_skill(tmp_path)
    (skill / "data.bin").write_bytes(b"\xff\x00")
    (skill / ".hidden").write_text("x")
    (tmp_path / "no-skill").mkdir()
    specs = {spec.name: spec for spec in specs_from_skills(tmp_path)}
    assert sorted(specs) == ["skill://a-skill/SKILL.md", "skill://a-skill/data.bin"]
    assert specs["skill://a-skill/SKILL.md"].shown["name"] == "a-skill"
    assert specs["skill://a-skill/data.bin"].skill is None
    assert {spec.cache_ms for spec in specs.values()} == {60_000}
    function = specs["skill://a-skill/data.bin"].function
    assert function is not None
    assert function({}) == [{"mimeType": "application/octet-stream", "blob": "/wA="}]


@pytest.mark.parametrize(
    ("name", "head", "line"),
    [
        ("a-skill", "description: x", 1),
        ("a-skill", "name: a-skill", 1),
        ("a-skill", "description: x\nname: another", 3),
        ("A-Skill", "name: A-Skill\ndescription: x", 2),
        ("a--skill", "name: a--skill\ndescription: x", 2),
        ("a-skill", "name: a-skill\ndescription: ''", 3),
        ("a-skill", "name: a-skill\ndescription: x\nmore: [", 4),
    ],
)
def test_a_skill_that_breaks_the_rules_is_refused_at_its_line(
    tmp_path: Path, name: str, head: str, line: int
) -> None:
    a_skill(tmp_path, name, head)
    with pytest.raises(BadTool, match=rf"SKILL\.md:{line}:1: "):
        specs_from_skills(tmp_path)


def test_a_skill_has_bounds_and_names_that_fit_into_an_address(tmp_path: Path) -> None:
    skill = a_skill(tmp_path)
    (skill / "a b.txt").write_text("x")
    with pytest.raises(BadTool, match="names of files"):
        specs_from_skills(tmp_path)
    (skill / "a b.txt").unlink()
    for number in range(512):
        (skill / f"{number}.txt").write_text("x")
    with pytest.raises(BadTool, match="at most 512"):
        specs_from_skills(tmp_path)
    with pytest.raises(BadTool, match="there is no folder of skills"):
        specs_from_skills(tmp_path / "nowhere")
