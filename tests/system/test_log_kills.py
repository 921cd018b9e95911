"""Processes that are killed while they write: what they said is written is there, and the chain holds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from portbook.audit.chain_verification import verify
from portbook.audit.log_reader_and_follower import files_in, lines_of, record_of, stream_folder
from support.counts import count
from support.portbook_process import child

# Writes records without end, and says the number of each once it is written.
WRITER = """
import sys
from pathlib import Path
from portbook.audit.journal import ChainedSink
from portbook.canonical import json_bytes
sink = ChainedSink(Path(sys.argv[1]), "execution", started=sys.argv[2], run="r", keep=1000)
number = 0
while True:
    number += 1
    sink.write(json_bytes({"number": number, "text": "x" * (number * 37 % 5000)}))
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


@pytest.mark.covers("002.logging.kills")
@pytest.mark.soak("log kills")
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    for kill in range(count("log kills")):
        started = f"2026-01-01T00:{kill // 60:02d}:{kill % 60:02d}.000Z"
        before = 1 + kill % 20 * 7
        command = [sys.executable, "-c", WRITER, str(tmp_path), started]
        with child(command, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            for _ in range(before):
                writer.stdout.readline()
            writer.kill()
            # What it had said before the kill arrived counts too; a last line may be cut.
            said = [line for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        acknowledged.append(int(said[-1]) if said else before)
    paths = files_in(stream_folder(tmp_path, "execution"))
    verdict = verify({path.name: lambda path=path: lines_of(path) for path in paths}, keep=1000)
    assert verdict.broken is None
    assert verdict.files == count("log kills")
    for path, said in zip(paths, acknowledged, strict=True):
        numbers = [record["number"] for line in lines_of(path) if (record := record_of(line))]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= said
