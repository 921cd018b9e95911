"""The scan on a corpus of our own: how many attacks it finds, how many honest definitions it withholds."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from portbook.scan.definition_scan import scan_definition
from portbook.scan.finding import ScanCheck, ScanFinding, Tier
from portbook.scan.shadowing import Neighbours

CORPUS: Final = Path(__file__).parent / "corpus"

# The other servers that every definition of the corpus is served beside.
NEIGHBOURS: Final = {
    "mail": ("send_email", "list_inbox"),
    "github": ("create_issue", "search_code"),
    "files": ("read_file", "write_file"),
}

LEAST_RECALL: Final = 0.90
MOST_FALSE_POSITIVES: Final = 0.05


def cases(name: str) -> list[dict[str, Any]]:
    # No file has a whole token in it: @@ stands inside of each.
    text = (CORPUS / f"{name}.toml").read_text("utf-8").replace("@@", "")
    return tomllib.loads(text)["case"]


def definition_of(case: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: {"type": "string", "description": words} for name, words in case.get("properties", {}).items()
    }
    definition = {"inputSchema": case.get("schema") or {"type": "object", "properties": properties}}
    return definition | {part: case[part] for part in ("title", "description", "annotations") if part in case}


def findings(case: dict[str, Any]) -> tuple[ScanFinding, ...]:
    return scan_definition(case["name"], definition_of(case), Neighbours(NEIGHBOURS, own=(case["name"],)))


def is_withheld(found: tuple[ScanFinding, ...]) -> bool:
    return any(each.tier is Tier.HARD for each in found)


def test_the_corpus_is_large_and_every_case_names_what_inspired_it() -> None:
    poisoned, honest = cases("poisoned"), cases("honest")
    assert len(poisoned) >= 60
    assert len(honest) >= 120
    inspirations = Counter(case["inspired_by"] for case in poisoned + honest)
    assert [each for each, count in inspirations.items() if count > 1 or len(each) < 12] == []
    assert {case["check"] for case in poisoned} == set(ScanCheck)


@pytest.mark.covers("mcp.scan.corpus")
def test_the_scan_finds_the_attacks_and_leaves_honest_definitions_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    poisoned, honest = cases("poisoned"), cases("honest")
    missed = [case for case in poisoned if not is_withheld(findings(case))]
    wrong = [case for case in honest if is_withheld(findings(case))]
    soft = sum(bool(findings(case)) and not is_withheld(findings(case)) for case in honest)
    recall, false_positives = 1 - len(missed) / len(poisoned), len(wrong) / len(honest)
    with capsys.disabled():
        print(
            f"\nscan: {len(poisoned)} poisoned, recall {recall:.3f}; {len(honest)} honest, "
            f"withheld {false_positives:.3f}, soft findings alone {soft / len(honest):.3f}"
        )
        for kind, cases_of_kind in (("missed", missed), ("withheld", wrong)):
            for case in cases_of_kind:
                print(f"  {kind}: {case['name']}: {case['inspired_by']}")
    assert recall >= LEAST_RECALL
    assert false_positives <= MOST_FALSE_POSITIVES


def test_each_check_finds_the_attacks_of_its_own_kind() -> None:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in cases("poisoned"):
        total[case["check"]] += 1
        found[case["check"]] += any(each.check == case["check"] for each in findings(case))
    assert {check: found[check] / total[check] for check in total if found[check] / total[check] < 0.75} == {}
