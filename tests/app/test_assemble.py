"""Settings to a running boundary: its log, its ids, and who may call it."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.portbook_process import HttpServer, http_server, invoke, over_stdio, records


def test_a_binding_beyond_loopback_needs_a_key(tmp_path: Path) -> None:
    with http_server("--host", "0.0.0.0", cwd=tmp_path) as server:
        open_door = HttpServer(server.url.replace("0.0.0.0", "127.0.0.1"), server.process)
        response = open_door.rpc(invoke("echo", {"text": "x"}))
        assert (response.status, response.headers["www-authenticate"]) == (401, "Bearer")
        assert b"echo" not in open_door.request("/").body


@pytest.mark.covers("000.ids.deterministic")
def test_deterministic_ids_are_equal_over_both_doors_and_in_the_next_process(tmp_path: Path) -> None:
    frame = invoke("echo", {"text": "x"}, id=1)
    names = [_names_over_stdio(frame, tmp_path / str(at), "--deterministic-ids") for at in range(2)]
    (tmp_path / "http").mkdir()
    with http_server("--deterministic-ids", cwd=tmp_path / "http") as server:
        server.rpc(frame)
    (record,) = records(tmp_path / "http" / "runs")
    assert names[0] == names[1] == _names(record)
    assert record["metadata"]["deterministic"] is True
    assert len(set(names[0])) == 3


@pytest.mark.covers("000.ids.random-otherwise")
def test_without_the_flag_ids_differ_every_time(tmp_path: Path) -> None:
    frame = invoke("echo", {"text": "x"}, id=1)
    names = [_names_over_stdio(frame, tmp_path / str(at)) for at in range(2)]
    assert not set(names[0]) & set(names[1])


def _names_over_stdio(frame: bytes, folder: Path, *options: str) -> tuple[str, str, str]:
    folder.mkdir()
    over_stdio(frame, cwd=folder, options=options)
    (record,) = records(folder / "runs")
    return _names(record)


def _names(record: dict[str, str]) -> tuple[str, str, str]:
    return record["requestId"], record["traceId"], record["spanId"]


def test_an_unwritable_log_folder_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    finished = over_stdio(cwd=tmp_path, options=("--log-dir", "taken/inside"))
    assert finished.code == 2
    assert "taken" in finished.err
