"""The official conformance suite passes, whole, and the fixture offers all that its scenarios call."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from portbook.tools.catalog import Catalog
from portbook.tools.toolset_loader import load_toolsets
from support.counts import COUNTS, count
from support.stand_in import portbook_program

HERE = Path(__file__).resolve().parent


def _suite() -> ModuleType:
    spec = importlib.util.spec_from_file_location("portbook_conformance_suite", HERE / "suite.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SUITE = _suite()

TOOLS = {
    *("test_simple_text", "test_image_content", "test_audio_content", "test_embedded_resource"),
    *("test_multiple_content_types", "test_error_handling", "test_tool_with_progress"),
    *("json_schema_2020_12_tool", "test_x_mcp_header", "test_tool_with_logging", "test_sampling"),
    *("test_elicitation", "test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"),
    *("test_reconnection", "test_missing_capability", "test_streaming_elicitation", "test_logging_tool"),
    *("test_trigger_tool_change", "test_trigger_prompt_change", "test_tool_with_task", "greet"),
    *("slow_compute", "failing_job", "protocol_error_job", "confirm_delete", "multi_input"),
    *(
        f"test_input_required_result_{name}"
        for name in (
            *("elicitation", "sampling", "list_roots", "request_state", "multiple_inputs"),
            *("multi_round", "tampered_state", "capabilities"),
        )
    ),
}
RESOURCES = {
    "test://static-text",
    "test://static-binary",
    "test://watched-resource",
    "test://template/{id}/data",
}
PROMPTS = {
    *("test_simple_prompt", "test_prompt_with_arguments", "test_prompt_with_embedded_resource"),
    *("test_prompt_with_image", "test_input_required_result_prompt"),
}


@pytest.mark.covers("design.conformance.fixture")
def test_the_fixture_offers_all_that_scenarios_would_otherwise_pass_without() -> None:
    [toolset] = load_toolsets(str(SUITE.EVERYTHING))
    catalog = Catalog(toolset.specs())
    assert {tool.spec.name for tool in catalog.of("tool")} >= TOOLS
    assert {tool.spec.name for tool in catalog.of("resource")} >= RESOURCES
    assert {tool.spec.name for tool in catalog.of("prompt")} >= PROMPTS
    assert [tool.spec.name for tool in catalog.of("resource") if tool.spec.skill is not None]
    assert all(tool.spec.description for tool in catalog)


AT_ONCE = 3  # the scenarios spend most of their time waiting
CHOSEN = SUITE.SELECTIONS[: count("conformance selections")]


def test_a_soak_takes_every_selection() -> None:
    assert COUNTS["conformance selections"].long == len(SUITE.SELECTIONS)


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Future[list[Any]]]]:
    """All selections, under way side by side; each has a server of its own."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            selection.name: pool.submit(lambda selection=selection: list(SUITE.run_all((selection,))))
            for selection in CHOSEN
        }


@pytest.mark.timeout(300)
@pytest.mark.soak("conformance selections")
@pytest.mark.covers("design.conformance.suite")
@pytest.mark.parametrize("name", [selection.name for selection in CHOSEN])
def test_every_scenario_of_the_official_suite_passes(
    name: str, running: dict[str, Future[list[Any]]]
) -> None:
    try:
        [counted] = running[name].result()
    except SUITE.sdks.Unavailable as unavailable:
        SUITE.sdks.skip_unless_ci(unavailable)
    assert counted.problems == []


LATE = "s: FAILURE: Task 1 did not reach status input_required within 5000ms"


@pytest.mark.parametrize(
    ("came", "left"),
    [
        pytest.param([[LATE], []], [], id="in time when alone"),
        pytest.param([[LATE, LATE], [LATE], []], [], id="in time at last"),
        pytest.param([[LATE], [LATE], [LATE]], [LATE], id="never in time"),
        pytest.param([["wrong"]], ["wrong"], id="wrong"),
        pytest.param([[LATE, "wrong"]], [LATE, "wrong"], id="wrong and late"),
        pytest.param([[LATE], ["wrong"]], ["wrong"], id="wrong when alone"),
    ],
)
def test_only_what_was_late_by_the_clock_of_the_suite_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, came: list[list[str]], left: list[str]
) -> None:
    runs = iter(came)
    asked: list[tuple[str, ...]] = []

    def run(selection: Any, behind: str | None) -> Any:
        asked.append(selection.arguments)
        problems = next(runs)
        late = ["tasks-input" for each in problems if SUITE.LATE.search(each)]
        return SUITE.Counted(selection, behind=behind, problems=problems, late=late)

    monkeypatch.setattr(SUITE, "_run", run)
    monkeypatch.setattr(SUITE.sdks, "conformance_suite", lambda _: None)
    selection = SUITE.Selection(("--suite", "all", "--spec-version", "2026-07-28"), 40)
    [counted] = SUITE.run_all((selection,))
    assert counted.problems == left
    again = ("--scenario", "tasks-input", "--spec-version", "2026-07-28")
    assert asked == [selection.arguments, *[again] * (len(came) - 1)]
    assert SUITE.FOLDER.sub(r"\1", "server-tasks-input-2026-11-18T07-49-31-838Z") == "tasks-input"


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of each scenario for clients."""
    try:
        with portbook_program(tmp_path_factory.mktemp("bin")) as portbook:
            return SUITE.run_clients(portbook, "2026-07-28")
    except SUITE.sdks.Unavailable as unavailable:
        SUITE.sdks.skip_unless_ci(unavailable)


@pytest.mark.timeout(300)
@pytest.mark.covers("design.conformance.client")
@pytest.mark.parametrize("scenario", SUITE.CLIENT_SCENARIOS)
def test_every_scenario_for_clients_passes_with_portbook_as_the_client(
    scenario: str, clients: dict[str, Any]
) -> None:
    assert clients[scenario].problems == []


def test_a_soak_takes_every_way_behind_portbook() -> None:
    assert COUNTS["conformance ways"].long == len(SUITE.BEHIND)


WAYS = SUITE.BEHIND[: count("conformance ways")]


@pytest.fixture(scope="module")
def behind() -> Iterator[dict[str, Future[list[Any]]]]:
    """All ways of the fixture behind Portbook, under way side by side."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            f"{way}: {selection.name}": pool.submit(
                lambda way=way, selection=selection: list(SUITE.run_all((selection,), way))
            )
            # Those that take longest first.
            for way, selection in sorted(WAYS, key=lambda each: -each[1].scenarios)
        }


@pytest.mark.timeout(300)
@pytest.mark.soak("conformance ways")
@pytest.mark.covers("design.conformance.behind")
@pytest.mark.parametrize("name", [f"{way}: {selection.name}" for way, selection in WAYS])
def test_every_scenario_passes_through_portbook_with_the_fixture_behind_it(
    name: str, behind: dict[str, Future[list[Any]]]
) -> None:
    try:
        [counted] = behind[name].result()
    except SUITE.sdks.Unavailable as unavailable:
        SUITE.sdks.skip_unless_ci(unavailable)
    assert counted.problems == []
