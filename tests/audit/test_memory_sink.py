"""Sinks without files: what they keep, and that nothing fails there."""

from __future__ import annotations

from portbook.audit.memory_sink import MemorySink, NoSink
from portbook.canonical import json_bytes


def test_the_memory_sink_keeps_both_views_and_intents_in_order() -> None:
    sink = MemorySink()
    sink.mend()
    for number in (1, 2):
        sink.intend(json_bytes({"intent": number}))
        sink.write(json_bytes({"envelope": number}), json_bytes({"execution": number}))
    sink.close()
    assert sink.records == [{"envelope": 1}, {"envelope": 2}]
    assert sink.executions == [{"execution": 1}, {"execution": 2}]
    assert sink.intents == [{"intent": 1}, {"intent": 2}]


def test_no_sink_keeps_nothing_and_never_fails() -> None:
    sink = NoSink()
    sink.look()
    sink.mend()
    sink.intend(b"{}")
    sink.write(b"{}", b"{}")
    sink.close()
