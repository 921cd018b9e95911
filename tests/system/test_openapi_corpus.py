"""The OpenAPI documents of APIs.guru, all of them: each starts, and nearly all operations are served."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from support import sdks
from support.counts import count

SHARE = 0.97


@pytest.mark.soak("vendor documents")
def test_documents_of_vendors_start_and_their_operations_are_served() -> None:
    wanted = count("vendor documents")
    if not wanted:
        pytest.skip("only in a soak: the documents are half a gigabyte")
    try:
        folder = sdks.openapi_documents()
    except sdks.Unavailable as unavailable:
        sdks.skip_unless_ci(unavailable)
    done = subprocess.run(
        [sys.executable, "-m", "bench.openapi_corpus", str(folder), "--json"],
        cwd=sdks.ROOT,
        capture_output=True,
        text=True,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == wanted, done.stderr
    assert [(row["file"], row["problem"]) for row in rows if row["problem"]] == []
    served, all_of_them = (sum(row[key] for row in rows) for key in ("served", "operations"))
    assert served >= SHARE * all_of_them, done.stderr
