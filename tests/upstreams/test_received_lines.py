"""What a server wrote: messages, lines that are none, and answers that cannot be read."""

from __future__ import annotations

import pytest

from portbook.upstreams.message_checks_and_meta import UnreadableAnswer, messages_in
from portbook.wire.lines_and_size_limit import OVERSIZE

ANSWER = b'{"jsonrpc":"2.0","id":7,"result":{}}'


def test_a_message_is_read_and_a_batch_where_the_revision_has_them() -> None:
    message = {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert messages_in(ANSWER, has_batches=False) == [message]
    assert messages_in(b"[" + ANSWER + b"]", has_batches=True) == [message]
    assert messages_in(b"[" + ANSWER + b"]", has_batches=False) == UnreadableAnswer(
        "an answer is a batch, which its revision does not have"
    )


@pytest.mark.parametrize("line", [b"Listening on 8000", b"", b"[info] ready", b'{"level": info}'])
def test_what_a_program_prints_is_no_message(line: bytes) -> None:
    assert messages_in(line, has_batches=True) == [None]


def test_a_broken_answer_is_told_with_the_ids_that_it_names() -> None:
    read = messages_in(ANSWER[:-1] + b',"id":8', has_batches=False)
    assert isinstance(read, UnreadableAnswer)
    assert read.named == {7, 8}
    assert messages_in(OVERSIZE, has_batches=False) == UnreadableAnswer("an answer is too large")
