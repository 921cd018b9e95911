"""Whatever is done to a log afterwards is found with its place: records, files, writers and checkpoints."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from portbook.audit.checkpoint import checkpoint_of
from portbook.audit.journal import chained
from portbook.stores.checkpoints import CheckpointRow, Segment
from support.portbook_process import Finished, invoke, run

TOOLS = """
from portbook import Toolset
toolset = Toolset("shop")

@toolset.tool(effect="read")
def price(item: str) -> int:
    return len(item)

@toolset.tool(effect="write")
def order(item: str) -> str:
    return item
"""
SETTINGS = """
[docs]
enabled = false
[envelope]
signing_key = "signing.pem"
"""
CALLS = [invoke("order", {"item": f"tea {number}"}) for number in range(3)] + [
    invoke("price", {"item": f"tea {number}"}) for number in range(3)
]


@dataclass
class Shop:
    """A folder in which two runs wrote six records each, every run with a checkpoint of its own."""

    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "runs" / "mcp_server"

    def file(self, run_number: int, stream: str = "execution") -> Path:
        return sorted((self.log / stream).glob("*Z.*.jsonl"))[run_number]

    def lines(self, run_number: int) -> list[bytes]:
        return self.file(run_number).read_bytes().splitlines(keepends=True)

    def rewrite(self, run_number: int, lines: list[bytes]) -> None:
        self.file(run_number).write_bytes(b"".join(lines))

    def sql(self, statement: str, *values: Any) -> list[Any]:
        with sqlite3.connect(self.folder / "portbook.db") as connection:
            found = connection.execute(statement, values).fetchall()
        connection.close()
        return found

    def checkpoint(self, number: int) -> CheckpointRow:
        return CheckpointRow(*self.sql("SELECT * FROM audit_checkpoint WHERE number = ?", number)[0])

    def verify(self, *options: str) -> Finished:
        return run("audit", "verify", "--json", *options, cwd=self.folder)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    assert run("keys", "signing", "signing.pem", cwd=folder).code == 0
    for _ in range(2):
        done = run("serve", "--stdio", "shop.py", stdin=b"\n".join((*CALLS, b"")), cwd=folder)
        assert [answer["result"] for answer in done.answers[3:]] == [5, 5, 5], done.err
    shutil.copytree(folder, folder.with_name("kept"), symlinks=True)
    return Shop(folder)


@pytest.fixture
def shop(written: Shop) -> Iterator[Shop]:
    yield written
    # In the same place: a checkpoint knows the folder of the records.
    shutil.rmtree(written.folder)
    shutil.copytree(written.folder.with_name("kept"), written.folder, symlinks=True)


def flip(shop: Shop) -> None:
    lines = shop.lines(1)
    lines[2] = lines[2].replace(b'"status_code":200', b'"status_code":500')
    shop.rewrite(1, lines)


def delete(shop: Shop) -> None:
    lines = shop.lines(1)
    shop.rewrite(1, lines[:2] + lines[3:])


def cut_the_end(shop: Shop) -> None:
    shop.rewrite(1, shop.lines(1)[:4])


def drop_a_run(shop: Shop) -> None:
    shop.file(1).unlink()


def drop_a_writer(shop: Shop) -> None:
    for stream in ("execution", "intent", "basis", "envelope_validation"):
        shop.file(1, stream).unlink()


def reorder(shop: Shop) -> None:
    lines = shop.lines(1)
    lines[2], lines[3] = lines[3], lines[2]
    shop.rewrite(1, lines)


def rechain(shop: Shop, run_number: int = 1) -> None:
    """Change a record, and compute every hash from there on anew."""
    lines = shop.lines(run_number)
    before = json.loads(lines[1])["hash"]
    records = [line.partition(b'","')[2].rpartition(b',"hash":"')[0] for line in lines[2:]]
    bodies = [b'{"' + record + b"}" for record in records]
    bodies[0] = bodies[0].replace(b'"status_code":200', b'"status_code":500')
    shop.rewrite(run_number, [*lines[:2], chained(bodies, 2, before)[0]])


def replace_the_newest_checkpoint(shop: Shop, *, keeps_signature: bool = True) -> None:
    """Cut the end of the log, and make the checkpoint that the shorter log would have had."""
    cut_the_end(shop)
    log, name = str(shop.folder / "runs"), shop.file(1).name
    hashes = [json.loads(line)["hash"] for line in shop.lines(1)]
    root = hashlib.sha256(b"\x01" + "".join(hashes).encode()).hexdigest()
    shop.sql(
        "UPDATE audit_segment SET last = 4, head = ?, records = ? WHERE stream = 'execution' AND file = ?",
        hashes[-1], root, name,
    )  # fmt: skip
    rows = shop.sql(
        "SELECT log, stream, file, first, last, head, records FROM audit_segment "
        "WHERE checkpoint = 2 ORDER BY log, stream, file, first"
    )
    assert rows[0][0] == log
    old = shop.checkpoint(2)
    at = json.loads(old.body)["at"]
    forged = checkpoint_of(shop.checkpoint(1), [Segment(*row) for row in rows], [], None, at, None)
    key_id, signature = (old.key_id, old.signature) if keeps_signature else (None, None)
    shop.sql(
        "UPDATE audit_checkpoint SET body = ?, hash = ?, key_id = ?, signature = ? WHERE number = 2",
        forged.body, forged.hash, key_id, signature,
    )  # fmt: skip


def replace_an_older_checkpoint(shop: Shop) -> None:
    body = shop.checkpoint(1).body.replace('"segments":2', '"segments":1')
    shop.sql(
        "UPDATE audit_checkpoint SET body = ?, hash = ? WHERE number = 1",
        body, hashlib.sha256(body.encode()).hexdigest(),
    )  # fmt: skip


def change_a_checkpoint(shop: Shop) -> None:
    shop.sql("UPDATE audit_checkpoint SET body = replace(body, '2026', '2025') WHERE number = 2")
    shop.sql("UPDATE audit_checkpoint SET body = body || ' ' WHERE number = 2")


def drop_the_oldest_checkpoint(shop: Shop) -> None:
    shop.sql("DELETE FROM audit_checkpoint WHERE number = 1")
    shop.sql("DELETE FROM audit_segment WHERE checkpoint = 1")


def forget_a_writer(shop: Shop) -> None:
    drop_a_writer(shop)
    shop.sql("DELETE FROM audit_segment WHERE checkpoint = 2 AND stream = 'execution'")


@pytest.mark.parametrize(
    ("tamper", "problem", "line", "seq"),
    [
        (flip, "altered", 3, 3),
        (delete, "missing", 3, 4),
        (cut_the_end, "missing", 5, 6),
        (drop_a_run, "file_lost", 1, 6),
        (drop_a_writer, "file_lost", 1, 6),
        (reorder, "missing", 3, 4),
        (rechain, "altered", 6, 6),
    ],
)
@pytest.mark.covers("002.logging.tampered")
def test_what_is_done_to_records_is_found_with_its_place(
    tamper: Callable[[Shop], None], problem: str, line: int, seq: int, shop: Shop
) -> None:
    name = shop.file(1).name
    tamper(shop)
    found = shop.verify()
    assert found.code == 1, found.err
    broken = found.answers[0]["streams"][0]["broken"]
    assert (broken["problem"], broken["file"], broken["line"], broken["seq"]) == (problem, name, line, seq)


@pytest.mark.parametrize(
    ("tamper", "problem", "number"),
    [
        (replace_the_newest_checkpoint, "bad_signature", 2),
        (replace_an_older_checkpoint, "bad_signature", 1),
        (change_a_checkpoint, "altered", 2),
        (drop_the_oldest_checkpoint, "missing", 1),
        (forget_a_writer, "altered", 2),
    ],
)
@pytest.mark.covers("002.logging.tampered-checkpoints")
def test_what_is_done_to_checkpoints_is_found_with_its_place(
    tamper: Callable[[Shop], None], problem: str, number: int, shop: Shop
) -> None:
    tamper(shop)
    found = shop.verify()
    assert found.code == 1, found.err
    broken = found.answers[0]["checkpoints"]["broken"]
    assert (broken["problem"], broken["checkpoint"]) == (problem, number)


@pytest.mark.covers("002.logging.noted-checkpoint")
def test_a_log_and_checkpoint_forged_together_are_found_by_the_key_and_by_a_noted_checkpoint(
    shop: Shop,
) -> None:
    whole = shop.verify("--public-key", "signing.pem.pub")
    newest = whole.answers[0]["checkpoints"]["newest"]
    assert whole.code == 0
    replace_the_newest_checkpoint(shop, keeps_signature=False)
    assert shop.verify().code == 0  # nothing that is left shows it
    unsigned = shop.verify("--public-key", "signing.pem.pub")
    assert unsigned.code == 1
    assert unsigned.answers[0]["checkpoints"]["broken"]["problem"] == "not_signed"
    noted = shop.verify("--checkpoint", newest)
    assert noted.code == 1
    assert noted.answers[0]["checkpoints"]["broken"]["checkpoint"] == 2


@pytest.mark.covers("002.logging.collected")
def test_collected_files_are_verified_against_exported_checkpoints(shop: Shop, tmp_path: Path) -> None:
    exported = tmp_path / "checkpoints.jsonl"
    exported.write_bytes(run("audit", "checkpoints", "--json", cwd=shop.folder).out)
    collected = tmp_path / "collected"
    shutil.copytree(shop.folder / "runs", collected, symlinks=True)
    options = ("audit", "verify", "--json", "--log-dir", "collected", "--checkpoints", str(exported))
    assert run(*options, cwd=tmp_path).code == 0
    (collected / "mcp_server" / "execution" / shop.file(1).name).unlink()
    broken = run(*options, cwd=tmp_path)
    assert broken.code == 1
    assert broken.answers[0]["streams"][0]["broken"]["problem"] == "file_lost"


def proof_for(shop: Shop, tmp_path: Path) -> Path:
    path = tmp_path / "proof.json"
    path.write_bytes(run("audit", "prove", "5", cwd=shop.folder).out)
    return path


@pytest.mark.covers("002.logging.proof")
def test_a_proof_of_one_record_is_verified_without_the_log(shop: Shop, tmp_path: Path) -> None:
    path = proof_for(shop, tmp_path)
    (tmp_path / "signing.pub").write_bytes((shop.folder / "signing.pem.pub").read_bytes())
    proven = run("audit", "verify-proof", "proof.json", "--public-key", "signing.pub", "--json", cwd=tmp_path)
    assert proven.code == 0, proven.err
    found = proven.answers[0]
    assert (found["valid"], found["anchored"], found["record"]["seq"]) == (True, True, 5)
    assert found["record"]["tool_id"] == "mcp.tool:price"
    others = {json.loads(line)["request_id"] for line in shop.lines(1)} - {found["record"]["request_id"]}
    assert len(others) == 5
    assert not [each for each in others if each in path.read_text()]  # nothing of other calls


@pytest.mark.covers("002.logging.proof-forged")
def test_a_proof_that_was_changed_proves_nothing(shop: Shop, tmp_path: Path) -> None:
    whole = proof_for(shop, tmp_path).read_bytes()
    for part in ("record", "checkpoint"):  # tests/audit/test_inclusion_proof.py changes every part
        proof = json.loads(whole)
        text = json.dumps(proof[part])
        digit = next(at for at, each in enumerate(text) if each in "123456789" and text[at - 1] in "abcdef0")
        proof[part] = json.loads(text[:digit] + ("1" if text[digit] != "1" else "2") + text[digit + 1 :])
        (tmp_path / "forged.json").write_text(json.dumps(proof))
        forged = run("audit", "verify-proof", "forged.json", cwd=tmp_path)
        assert (forged.code, "proves nothing" in forged.err) == (1, True)
