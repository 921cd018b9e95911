"""`python -m bench.assets`: assets checked and compared, beside a loop over `jsonschema`, and `jsonpatch`.

Both sides get the same files and give the same verdicts, or the run fails. The two validators run as whole
processes, from the start to the last verdict; the two differs run in this process, on parsed documents.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import jsonpatch  # pyright: ignore[reportMissingTypeStubs] # measured, not used

from portbook.assets.json_patch import diff

__all__ = ["main"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_LOOP: Final = _ROOT / "bench" / "jsonschema_loop.py"

# What the project asks of itself.
_WANTED: Final = {"validate": 20, "diff": 15}

_NUMBER: Final = {"type": "number"}
_PARAMETER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "min": _NUMBER,
        "max": _NUMBER,
        "unit": {"enum": ["linear", "Hz", "dB", "s"]},
        "path": {"type": "string", "pattern": "^[a-z]+(\\.[a-z]+)*$"},
    },
    "required": ["name", "path"],
    "additionalProperties": False,
}
_SCHEMAS: Final[dict[str, Any]] = {
    "parameter": _PARAMETER,
    "asset": {
        "type": "object",
        "properties": {
            "schema": {"const": "asset"},
            "name": {"type": "string"},
            "parameters": {"type": "array", "items": {"$ref": "parameter.schema.json"}},
            "tone": {"anyOf": [{"type": "null"}, {"type": "object", "additionalProperties": _NUMBER}]},
        },
        "required": ["schema", "name", "parameters"],
    },
}


def main() -> int:
    """Measure, print and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.assets", description=__doc__)
    parser.add_argument("--files", type=int, default=10_000, help="assets to check (default: 10000)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        folder = Path(name)
        _write(folder, options.files)
        validate = _validate(folder, options.rounds)
    rows = {"validate": validate, "diff": _diff(options.rounds)}
    if options.json:
        print(json.dumps({"files": options.files, "rounds": options.rounds, **rows}, indent=2))
    else:
        _print(options.files, rows)
    return 0


def _row(ours: list[float], theirs: list[float], wanted: int) -> dict[str, float]:
    """Return both medians, and the median of what each turn's two make."""
    ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
    return {
        "portbook_ms": statistics.median(ours) * 1000,
        "other_ms": statistics.median(theirs) * 1000,
        "ratio": statistics.median(ratios),
        "wanted": wanted,
    }


# -- checking files


def _write(folder: Path, count: int) -> None:
    (folder / "schemas").mkdir()
    (folder / "assets").mkdir()
    for name, schema in _SCHEMAS.items():
        (folder / f"schemas/{name}.schema.json").write_text(json.dumps(schema))
    chance = random.Random(6)
    for at in range(count):
        asset = _asset(chance, at)
        (folder / f"assets/{at:06}.json").write_text(json.dumps(asset))


def _asset(chance: random.Random, at: int) -> dict[str, Any]:
    parameters = [
        {
            "name": f"p{n}",
            "path": "tone.filter",
            "min": 0,
            "max": chance.random(),
            "unit": chance.choice(["Hz", "s"]),
        }
        for n in range(chance.randrange(30, 60))
    ]
    if at % 100 == 0:
        parameters[0]["min"] = "none"
    tone = {f"k{n}": chance.random() for n in range(10)}
    return {"schema": "asset", "name": f"asset {at}", "parameters": parameters, "tone": tone}


def _validate(folder: Path, rounds: int) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "portbook",
        "validate",
        "--schemas",
        "schemas",
        "--format",
        "json",
        "assets",
    ]
    commands = {"ours": command, "theirs": [sys.executable, str(_LOOP)]}
    taken: dict[str, list[float]] = {"ours": [], "theirs": []}
    verdicts: set[str] = set()
    for _ in range(rounds):
        for side, arguments in commands.items():
            before = time.perf_counter()
            done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
            taken[side].append(time.perf_counter() - before)
            wrong = sorted(file["file"] for file in json.loads(done.stdout)["files"] if not file["ok"])
            verdicts.add(json.dumps(wrong))
    if len(verdicts) != 1:
        raise SystemExit("bench: the two validators do not agree")
    return _row(taken["ours"], taken["theirs"], _WANTED["validate"])


# -- comparing documents


def _diff(rounds: int) -> dict[str, float]:
    base, new = _documents(random.Random(6))
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(rounds):
        ours.append(_taken(lambda: diff(base, new)))
        theirs.append(_taken(lambda: jsonpatch.make_patch(base, new)))  # pyright: ignore[reportUnknownMemberType,reportUnknownLambdaType] # it has no types
    if len(diff(base, new)) != len(jsonpatch.make_patch(base, new).patch):  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType] # it has no types
        raise SystemExit("bench: the two patches are not of the same changes")
    return _row(ours, theirs, _WANTED["diff"])


def _documents(chance: random.Random) -> tuple[Any, Any]:
    """Return two documents of a megabyte that differ in two hundred places."""

    def value(depth: int) -> Any:
        if depth == 0:
            return chance.choice([1, 1.5, True, None, f"text {chance.randrange(9999)}"])
        return {f"key{n}": value(depth - 1) for n in range(chance.randrange(3, 8))}

    base: dict[str, Any] = {}
    while len(json.dumps(base)) < 1_000_000:
        base |= {f"part{len(base) + n}": value(4) for n in range(20)}
    new = copy.deepcopy(base)
    for _ in range(200):
        place: Any = new
        while isinstance(place[key := chance.choice(list(place))], dict):
            place = place[key]
        place[key] = f"changed {chance.random()}"
    return json.loads(json.dumps(base)), json.loads(json.dumps(new))


def _taken(work: Callable[[], object]) -> float:
    """Return the best of three, which whatever else the machine does disturbs least."""
    taken: list[float] = []
    for _ in range(3):
        before = time.perf_counter()
        work()
        taken.append(time.perf_counter() - before)
    return min(taken)


def _print(files: int, rows: dict[str, dict[str, float]]) -> None:
    names = {
        "validate": f"{files:,} files checked, beside a loop over jsonschema",
        "diff": "1 MB compared, beside jsonpatch",
    }
    print(f"{'':58}{'portbook, ms':>14}{'other, ms':>12}{'times':>8}{'wanted':>8}")
    for name, row in rows.items():
        print(
            f"{names[name]:58}{row['portbook_ms']:14,.1f}{row['other_ms']:12,.1f}{row['ratio']:8.1f}{row['wanted']:8}"
        )


if __name__ == "__main__":
    raise SystemExit(main())
