"""Changes as the journal has them."""

from __future__ import annotations

import json
from pathlib import Path

from portbook.adopt.adoption_journal import JournalChange, OurEntry
from portbook.adopt.file_change import FileChange


def test_a_change_is_read_as_it_was_written_and_has_no_contents() -> None:
    change = FileChange(Path("/f"), b"old contents", b"new contents", 0o600, Path("/f.bak"))
    noted = JournalChange.of(change, (OurEntry("json", ("s", "t"), "portbook", ("a", "b")),))
    text = json.dumps(noted.as_data())
    assert JournalChange.of_data(json.loads(text)) == noted
    assert "contents" not in text


def test_an_entry_of_an_earlier_journal_says_nothing_of_what_it_replaced() -> None:
    assert OurEntry.of_data({"form": "json", "path": ["s"], "name": "p"}).replaced == ()
