"""`python -m bench`: Portbook beside the servers that people know, over STDIO and HTTP."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.child import WrongAnswer
from bench.counts import count_call
from bench.goals import judged
from bench.page import tables, write_page
from bench.peers import ROOT, compile_portbook
from bench.rounds import Measured, measure
from bench.scenarios import FULL, QUICK, scenarios

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print or write, and return the exit status."""
    options = _options().parse_args(arguments)
    size = QUICK if options.quick else FULL
    if options.rounds:
        size = size._replace(rounds=options.rounds)
    every = scenarios(size)
    if unknown := set(options.only or ()) - {row.name for row in every}:
        names = ", ".join(f'"{row.name}"' for row in every)
        print(f'bench: no row "{min(unknown)}"; --only takes one of {names}', file=sys.stderr)
        return 2
    rows = [row for row in every if not options.only or row.name in options.only]
    try:
        compile_portbook()
        measured = measure(size, rows, _tell)
        if not options.only:
            _tell("counting")
            measured = replace(measured, counts=count_call(with_steps=not options.quick))
            _tell("")
    except WrongAnswer as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(_as_data(measured), indent=2))
    else:
        print(tables(measured))
    if options.write or not (options.quick or options.only or options.json):
        write_page(measured, options.folder)
    return 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer calls and one round: about two minutes")
    parser.add_argument("--rounds", type=int, help="how often each row is measured")
    parser.add_argument("--only", action="append", metavar="ROW", help="measure only this row; may repeat")
    parser.add_argument("--json", action="store_true", help="print data, with every run, instead of tables")
    parser.add_argument("--write", action="store_true", help="write the page and the plots in any case")
    parser.add_argument(
        "--folder", type=Path, default=ROOT / "docs" / "reference", help="where the page is written"
    )
    return parser


def _as_data(measured: Measured) -> dict[str, Any]:
    return {
        "size": measured.size._asdict(),
        "runs": {name: [run._asdict() for run in own] for name, own in measured.runs.items()},
        "payload_floors_us": measured.floors_us,
        "counts": None if measured.counts is None else measured.counts._asdict(),
        "left_out": measured.left_out,
        "goals": [
            {
                "goal": reached.goal.what,
                "unit": reached.goal.unit,
                "must": reached.goal.must,
                "aim": reached.goal.aim,
                "reached": None if reached.ratio is None else reached.ratio._asdict(),
                "by_cpu": None if reached.by_cpu is None else reached.by_cpu._asdict(),
                "verdict": reached.verdict,
            }
            for reached in judged(measured)
        ],
    }


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
