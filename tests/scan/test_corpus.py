"""The scan on a corpus of our own: how many attacks it finds, how many honest definitions it withholds."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from portbook.scan.definition_scan import scan_definition
from portbook.scan.scanned_text_and_finding import ScanCheck, ScanFinding, Tier
from portbook.scan.shadowing import Neighbours
from support.portbook_process import ROOT

CORPUS: Final = Path(__file__).parent / "corpus"

# The other servers that every definition of the corpus is served beside.
NEIGHBOURS: Final = {
    "mail": ("send_email", "list_inbox"),
    "github": ("create_issue", "search_code"),
    "files": ("read_file", "write_file"),
}

# The rules were written with the first two in sight: the second was held out until they had been measured on
# it once. Since the third was written, no rule was changed: it says what to expect of an attack that is new.
SETS: Final = {"tuned": "tuned", "once_held_out": "once held out, tuned since", "held_out": "held out"}

LEAST_RECALL: Final = 0.90
MOST_FALSE_POSITIVES: Final = 0.05


def cases(folder: str, name: str) -> list[dict[str, Any]]:
    # No file has a whole token in it: @@ stands inside of each.
    text = (CORPUS / folder / f"{name}.toml").read_text("utf-8").replace("@@", "")
    return tomllib.loads(text)["case"]


def definition_of(case: dict[str, Any]) -> dict[str, Any]:
    properties = {
        name: {"type": "string", "description": words} for name, words in case.get("properties", {}).items()
    }
    definition = {"inputSchema": case.get("schema") or {"type": "object", "properties": properties}}
    parts = ("title", "description", "annotations", "outputSchema")
    return definition | {part: case[part] for part in parts if part in case}


def findings(case: dict[str, Any]) -> tuple[ScanFinding, ...]:
    tools = NEIGHBOURS | {"another": tuple(case.get("beside", ()))}
    return scan_definition(case["name"], definition_of(case), Neighbours(tools, own=(case["name"],)))


def is_withheld(found: tuple[ScanFinding, ...]) -> bool:
    return any(each.tier is Tier.HARD for each in found)


class Measured(NamedTuple):
    """What the scan makes of one set of the corpus."""

    poisoned: list[dict[str, Any]]
    honest: list[dict[str, Any]]
    missed: list[dict[str, Any]]
    withheld: list[dict[str, Any]]

    @property
    def recall(self) -> float:
        return 1 - len(self.missed) / len(self.poisoned)

    @property
    def false_positives(self) -> float:
        return len(self.withheld) / len(self.honest)

    @property
    def counts(self) -> list[int]:
        """Return attacks, those withheld, honest definitions, those withheld."""
        found = len(self.poisoned) - len(self.missed)
        return [len(self.poisoned), found, len(self.honest), len(self.withheld)]

    def lines(self, name: str) -> Iterator[str]:
        yield (
            f"scan, {name}: {len(self.poisoned)} poisoned, recall {self.recall:.3f}; "
            f"{len(self.honest)} honest, withheld {self.false_positives:.3f}"
        )
        for kind, found in (("missed", self.missed), ("withheld", self.withheld)):
            for case in found:
                yield f"  {kind}: {case['name']}: {case['inspired_by']}"


def measured(folder: str) -> Measured:
    poisoned, honest = cases(folder, "poisoned"), cases(folder, "honest")
    return Measured(
        poisoned,
        honest,
        [case for case in poisoned if not is_withheld(findings(case))],
        [case for case in honest if is_withheld(findings(case))],
    )


def test_the_corpus_is_large_and_every_case_names_what_inspired_it() -> None:
    tuned = cases("tuned", "poisoned"), cases("tuned", "honest")
    assert len(tuned[0]) >= 60
    assert len(tuned[1]) >= 120
    every = [case for folder in SETS for kind in ("poisoned", "honest") for case in cases(folder, kind)]
    inspirations = Counter(case["inspired_by"] for case in every)
    assert [each for each, count in inspirations.items() if count > 1 or len(each) < 12] == []
    assert {case["check"] for case in tuned[0]} == set(ScanCheck)


@pytest.mark.covers("mcp.scan.corpus")
def test_the_scan_finds_the_attacks_and_leaves_honest_definitions_alone(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = {folder: measured(folder) for folder in SETS}
    with capsys.disabled():
        print("", *(line for folder, each in found.items() for line in each.lines(SETS[folder])), sep="\n")
    assert found["tuned"].recall >= LEAST_RECALL
    assert {folder for folder, each in found.items() if each.false_positives > MOST_FALSE_POSITIVES} == set()


def test_the_documentation_has_the_measured_figures() -> None:
    page = (ROOT / "docs" / "how-to" / "approve-what-mcp-servers-offer.md").read_text("utf-8")
    rows = re.findall(r"^\| (tuned|once held out|held out)[:,][^|]*\|([\d |]+)\|$", page, re.MULTILINE)
    told = {name.replace(" ", "_"): [int(cell) for cell in cells.split("|")] for name, cells in rows}
    assert told == {folder: measured(folder).counts for folder in SETS}


def test_each_check_finds_the_attacks_of_its_own_kind() -> None:
    found: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for case in cases("tuned", "poisoned"):
        total[case["check"]] += 1
        found[case["check"]] += any(each.check == case["check"] for each in findings(case))
    assert {check: found[check] / total[check] for check in total if found[check] / total[check] < 0.75} == {}
