"""The life of the validator in a server (specification 001): made ready, filled once, watched, let go.

A server runs as its users run it, with a probe that says on standard error what its validator does.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.in_process_connection import EVERY_REVISION, HANDSHAKES, handshake, params
from support.portbook_process import SAMPLE_TOOLS, environment, over_stdio, records

PROBE = """
import sys

from portbook.cli.main import main
from portbook.protocol.message_validation import SchemaValidator
from portbook.schema import official_schemas


def says(word, does):
    def probed(*given):
        print("probe", word, file=sys.stderr)
        return does(*given)
    return probed


SchemaValidator.initialize = says("ready", SchemaValidator.initialize)
SchemaValidator.shutdown = says("gone", SchemaValidator.shutdown)
compile_official = official_schemas.compile_official


def compiled(schema, fingerprint, dialect):
    print("probe compiled", fingerprint, file=sys.stderr)
    validator = compile_official(schema, fingerprint, dialect)
    validator.accepts = says("asked", validator.accepts)
    return validator


official_schemas.compile_official = compiled
main()
"""


def frames_of(revision: str) -> bytes:
    """The same three requests three times, after the handshake of a revision that has one."""
    sent: list[tuple[str, object]] = []
    if revision in HANDSHAKES:
        sent.append(("initialize", handshake(revision)))
    sent += [
        ("ping" if revision in HANDSHAKES else "server/discover", params(revision)),
        ("tools/list", params(revision)),
        ("tools/call", params(revision, name="echo", arguments={"text": "a"})),
    ] * 3
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": given})
        for number, (method, given) in enumerate(sent)
    ]
    return "\n".join(lines).encode() + b"\n"


def life(revision: str, folder: Path) -> list[list[str]]:
    """What the validator of a server did, in order, while a client sent each request three times."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, "serve", "--stdio", str(SAMPLE_TOOLS)],
        input=frames_of(revision),
        capture_output=True,
        cwd=folder,
        env=environment(),
        timeout=60,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert all("result" in answer for answer in answers), answers
    assert len(answers) == 9 + (revision in HANDSHAKES)
    return [line.split()[1:] for line in done.stderr.decode().splitlines() if line.startswith("probe ")]


@pytest.mark.covers("001.validator.cached")
@pytest.mark.parametrize("revision", EVERY_REVISION)
def test_a_server_compiles_a_definition_once_however_often_it_is_needed(
    revision: str, tmp_path: Path
) -> None:
    did = life(revision, tmp_path)
    compiled = [word[1] for word in did if word[0] == "compiled"]
    assert len(compiled) == len({*compiled}) > 2
    last = max(number for number, word in enumerate(did) if word[0] == "compiled")
    assert [word[0] for word in did[last:]].count("asked") > 6  # for those that came again, nothing was


@pytest.mark.covers("001.validator.lifecycle")
def test_a_server_makes_its_validator_ready_before_it_serves_and_lets_it_go_at_its_end(
    tmp_path: Path,
) -> None:
    did = [word[0] for word in life("2025-11-25", tmp_path)]
    assert (did.count("ready"), did.count("gone")) == (1, 1)
    assert did.index("ready") < did.index("asked")
    assert did[-1] == "gone"


@pytest.mark.covers("001.performance.monitored")
def test_the_time_of_every_message_is_told_also_of_those_that_validation_refuses(tmp_path: Path) -> None:
    frames = frames_of("2025-11-25").splitlines()
    refused = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":5}}'
    over_stdio(*frames, refused, b"{", cwd=tmp_path)
    found = records(tmp_path / "runs")
    assert len(found) == len(frames) + 2
    assert all(record["durationMs"] > 0 for record in found)
