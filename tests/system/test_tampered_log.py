"""Whatever is done to a log afterwards is found with its place: records, files, writers and checkpoints.

So it is in the log of one machine, and in what was collected from nodes whose checkpoints are in a database.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from portbook.audit.checkpoint_and_hash_tree import CheckpointRow, Segment, checkpoint_of
from portbook.audit.journal import chained
from support.portbook_process import Finished, HttpServer, http_server, invoke, run
from support.postgres_server import new_schema

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
    """A folder in which runs wrote six records each, every run with a checkpoint of its own."""

    folder: Path
    runs: int = 2

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
        columns = ", ".join(CheckpointRow._fields)
        return CheckpointRow(*self.sql(f"SELECT {columns} FROM audit_checkpoint WHERE number = ?", number)[0])

    def verify(self, *options: str) -> Finished:
        return run("audit", "verify", "--json", *options, cwd=self.folder)

    def keep(self) -> None:
        """Remember how everything is."""
        shutil.copytree(self.folder, self.folder.with_name("kept"), symlinks=True)

    def restore(self) -> None:
        # In the same place: a checkpoint knows the folder of the records.
        shutil.rmtree(self.folder)
        shutil.copytree(self.folder.with_name("kept"), self.folder, symlinks=True)


@dataclass
class CollectedShop(Shop):
    """The folder of an auditor: the records of nodes that share a database, which has the checkpoints."""

    url: str = ""

    def sql(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            found = connection.execute(statement.replace("?", "%s").encode(), values)
            return [] if found.description is None else found.fetchall()

    def verify(self, *options: str) -> Finished:
        exported = self.folder / "checkpoints.jsonl"
        exported.write_bytes(run("audit", "checkpoints", "--json", cwd=self.folder).out)
        return super().verify("--checkpoints", exported.name, *options)

    def keep(self) -> None:
        super().keep()
        for table in TABLES:
            self.sql(f"CREATE TABLE kept_{table} AS SELECT * FROM {table}")

    def restore(self) -> None:
        super().restore()
        for table in TABLES:
            self.sql(f"DELETE FROM {table}")
            self.sql(f"INSERT INTO {table} OVERRIDING SYSTEM VALUE SELECT * FROM kept_{table}")


TABLES = ("audit_checkpoint", "audit_segment")


def furnish(folder: Path, settings: str, key: Path | None = None) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "shop.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(settings)
    if key is None:
        assert run("keys", "signing", "signing.pem", cwd=folder).code == 0
    else:
        for name in ("signing.pem", "signing.pem.pub"):
            shutil.copy(key.with_name(name), folder / name)


@pytest.fixture(scope="module")
def one_machine(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """Two runs of one server, one after the other."""
    folder = tmp_path_factory.mktemp("shop")
    furnish(folder, SETTINGS)
    for _ in range(2):
        done = run("serve", "--stdio", "shop.py", stdin=b"\n".join((*CALLS, b"")), cwd=folder)
        assert [answer["result"] for answer in done.answers[3:]] == [5, 5, 5], done.err
    shop = Shop(folder)
    shop.keep()
    return shop


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory, postgres_server: str) -> Iterator[Shop]:
    """Three nodes that serve at the same time, and end one after the other."""
    root = tmp_path_factory.mktemp("nodes")
    with new_schema(postgres_server) as url:
        settings = f'{SETTINGS}[store]\nurl = "{url}"\n[audit]\ncheckpoint_s = 3600\n'
        shop = CollectedShop(root / "shop", 3, url)
        furnish(shop.folder, settings)
        folders = [root / f"node-{at}" for at in range(shop.runs)]
        with ExitStack() as stack:
            servers: list[HttpServer] = []
            for folder in folders:
                furnish(folder, settings, shop.folder / "signing.pem")
                servers.append(stack.enter_context(http_server(cwd=folder, tools=("shop.py",))))
            for call in CALLS:
                for server in servers:
                    assert "result" in server.rpc(call).json
            for server in servers:  # each makes a checkpoint at its end
                server.process.terminate()
                server.process.wait(60)
        for folder in folders:
            shutil.copytree(
                folder / "runs",
                shop.folder / "runs",
                ignore=shutil.ignore_patterns("*.latest.jsonl"),  # links
                dirs_exist_ok=True,
            )
        shop.keep()
        yield shop


@pytest.fixture
def machine(one_machine: Shop) -> Iterator[Shop]:
    yield one_machine
    one_machine.restore()


@pytest.fixture(params=["one_machine", "nodes"])
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    written: Shop = request.getfixturevalue(request.param)
    yield written
    written.restore()


def flip(shop: Shop) -> None:
    lines = shop.lines(1)
    lines[2] = lines[2].replace(b'"status_code":200', b'"status_code":500')
    shop.rewrite(1, lines)


def delete(shop: Shop) -> None:
    lines = shop.lines(1)
    shop.rewrite(1, lines[:2] + lines[3:])


def cut_the_end(shop: Shop, run_number: int = 1) -> None:
    shop.rewrite(run_number, shop.lines(run_number)[:4])


def drop_a_run(shop: Shop) -> None:
    shop.file(1).unlink()


def drop_a_writer(shop: Shop, run_number: int = 1) -> None:
    """Remove all that one writer wrote: where each node has one, that is the node."""
    for stream in ("execution", "intent", "basis", "envelope_validation"):
        shop.file(run_number, stream).unlink()


def copy_a_run(shop: Shop) -> None:
    shutil.copy(shop.file(0), shop.file(1).with_name("2000-01-01T00-00-00.000Z.copy.jsonl"))


def hide_a_lost_run(shop: Shop) -> None:
    """Remove a run, and add more files than are kept, as if it had been pruned."""
    file = shop.file(1)
    file.unlink()
    for number in range(1_001):
        file.with_name(f"2099-01-01T00-00-00.{number:03}Z.decoy.jsonl").write_bytes(b"")


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
    last, newest = shop.runs - 1, shop.runs
    cut_the_end(shop, last)
    hashes = [json.loads(line)["hash"] for line in shop.lines(last)]
    root = hashlib.sha256(b"\x01" + "".join(hashes).encode()).hexdigest()
    shop.sql(
        "UPDATE audit_segment SET last = 4, head = ?, records = ? WHERE stream = 'execution' AND file = ?",
        hashes[-1], root, shop.file(last).name,
    )  # fmt: skip
    rows = shop.sql(
        "SELECT log, stream, file, first, last, head, records FROM audit_segment "
        "WHERE checkpoint = ? ORDER BY log, stream, file, first",
        newest,
    )
    assert rows
    old = shop.checkpoint(newest)
    at = json.loads(old.body)["at"]
    forged = checkpoint_of(shop.checkpoint(newest - 1), [Segment(*row) for row in rows], [], None, at, None)
    key_id, signature = (old.key_id, old.signature) if keeps_signature else (None, None)
    shop.sql(
        "UPDATE audit_checkpoint SET body = ?, hash = ?, key_id = ?, signature = ? WHERE number = ?",
        forged.body, forged.hash, key_id, signature, newest,
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
    drop_a_writer(shop, shop.runs - 1)
    shop.sql("DELETE FROM audit_segment WHERE checkpoint = ? AND stream = 'execution'", shop.runs)


@pytest.mark.parametrize(
    ("tamper", "problem", "line", "seq"),
    [
        (flip, "altered", 3, 3),
        (delete, "missing", 3, 4),
        (cut_the_end, "missing", 5, 6),
        (drop_a_run, "file_lost", 1, 6),
        (drop_a_writer, "file_lost", 1, 6),
        (hide_a_lost_run, "file_lost", 1, 6),
        (reorder, "missing", 3, 4),
        (rechain, "altered", 6, 6),
    ],
)
@pytest.mark.covers("002.logging.tampered")
@pytest.mark.covers("021.audit.tampered-nodes")
def test_what_is_done_to_records_is_found_with_its_place(
    tamper: Callable[[Shop], None], problem: str, line: int, seq: int, shop: Shop
) -> None:
    name = shop.file(1).name
    tamper(shop)
    found = shop.verify()
    assert found.code == 1, found.err
    broken = found.answers[0]["streams"][0]["broken"]
    assert (broken["problem"], broken["file"], broken["line"], broken["seq"]) == (problem, name, line, seq)


def test_a_copy_of_a_file_is_found(machine: Shop) -> None:
    copied = machine.file(0).name
    copy_a_run(machine)
    found = machine.verify()
    assert found.code == 1, found.err
    broken = found.answers[0]["streams"][0]["broken"]
    assert (broken["problem"], broken["file"]) == ("copied", copied)
    assert "2000-01-01T00-00-00.000Z.copy.jsonl" in broken["message"]


@pytest.mark.parametrize(
    ("tamper", "problem", "number"),
    [
        (replace_the_newest_checkpoint, "bad_signature", None),
        (replace_an_older_checkpoint, "bad_signature", 1),
        (change_a_checkpoint, "altered", 2),
        (drop_the_oldest_checkpoint, "missing", 1),
        (forget_a_writer, "altered", None),
    ],
)
@pytest.mark.covers("002.logging.tampered-checkpoints")
def test_what_is_done_to_checkpoints_is_found_with_its_place(
    tamper: Callable[[Shop], None], problem: str, number: int | None, shop: Shop
) -> None:
    tamper(shop)
    found = shop.verify()
    assert found.code == 1, found.err
    broken = found.answers[0]["checkpoints"]["broken"]
    assert (broken["problem"], broken["checkpoint"]) == (problem, number or shop.runs)


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
    assert noted.answers[0]["checkpoints"]["broken"]["checkpoint"] == shop.runs


@pytest.mark.covers("002.logging.collected")
def test_collected_files_are_verified_against_exported_checkpoints(machine: Shop, tmp_path: Path) -> None:
    exported = tmp_path / "checkpoints.jsonl"
    exported.write_bytes(run("audit", "checkpoints", "--json", cwd=machine.folder).out)
    collected = tmp_path / "collected"
    shutil.copytree(machine.folder / "runs", collected, symlinks=True)
    options = ("audit", "verify", "--json", "--log-dir", "collected", "--checkpoints", str(exported))
    assert run(*options, cwd=tmp_path).code == 0
    (collected / "mcp_server" / "execution" / machine.file(1).name).unlink()
    broken = run(*options, cwd=tmp_path)
    assert broken.code == 1
    assert broken.answers[0]["streams"][0]["broken"]["problem"] == "file_lost"


def proof_for(machine: Shop, tmp_path: Path) -> Path:
    path = tmp_path / "proof.json"
    path.write_bytes(run("audit", "prove", "5", cwd=machine.folder).out)
    return path


@pytest.mark.covers("002.logging.proof")
def test_a_proof_of_one_record_is_verified_without_the_log(machine: Shop, tmp_path: Path) -> None:
    path = proof_for(machine, tmp_path)
    (tmp_path / "signing.pub").write_bytes((machine.folder / "signing.pem.pub").read_bytes())
    proven = run("audit", "verify-proof", "proof.json", "--public-key", "signing.pub", "--json", cwd=tmp_path)
    assert proven.code == 0, proven.err
    found = proven.answers[0]
    assert (found["valid"], found["anchored"], found["record"]["seq"]) == (True, True, 5)
    assert found["record"]["tool_id"] == "mcp.tool:price"
    others = {json.loads(line)["request_id"] for line in machine.lines(1)} - {found["record"]["request_id"]}
    assert len(others) == 5
    assert not [each for each in others if each in path.read_text()]  # nothing of other calls


@pytest.mark.covers("002.logging.proof-forged")
def test_a_proof_that_was_changed_proves_nothing(machine: Shop, tmp_path: Path) -> None:
    whole = proof_for(machine, tmp_path).read_bytes()
    for part in ("record", "checkpoint"):  # tests/audit/test_inclusion_proof.py changes every part
        proof = json.loads(whole)
        text = json.dumps(proof[part])
        digit = next(at for at, each in enumerate(text) if each in "123456789" and text[at - 1] in "abcdef0")
        proof[part] = json.loads(text[:digit] + ("1" if text[digit] != "1" else "2") + text[digit + 1 :])
        (tmp_path / "forged.json").write_text(json.dumps(proof))
        forged = run("audit", "verify-proof", "forged.json", cwd=tmp_path)
        assert (forged.code, "proves nothing" in forged.err) == (1, True)
