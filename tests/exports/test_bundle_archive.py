"""The same files make the same bytes."""

from __future__ import annotations

import io
import zipfile

from portbook.cli.export_bundle import archive


def test_the_bytes_depend_on_the_files_alone_and_not_on_their_order() -> None:
    files = {"b/c.txt": b"two", "a.txt": b"one"}
    made = archive(files)
    assert made == archive(dict(reversed(files.items())))
    assert made != archive({**files, "a.txt": b"other"})
    with zipfile.ZipFile(io.BytesIO(made)) as packed:
        assert packed.testzip() is None
        assert {name: packed.read(name) for name in packed.namelist()} == files
        told = {
            (entry.date_time, entry.external_attr >> 16, entry.compress_type) for entry in packed.infolist()
        }
    assert told == {((1980, 1, 1, 0, 0, 0), 0o100644, zipfile.ZIP_STORED)}
