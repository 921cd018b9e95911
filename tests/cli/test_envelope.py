"""`portbook envelope check`: an auditor's command."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portbook import Controls, SigningKey, Subject, enclose, wrap
from portbook.canonical import json_bytes
from support.portbook_process import PORTBOOK, environment, run

KEY, OTHER = SigningKey(bytes(range(32))), SigningKey(bytes(range(1, 33)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a signed envelope, what went into it, and two keys."""
    subject = Subject("t", "1", arguments={"a": 1})
    (tmp_path / "envelope.json").write_bytes(
        json_bytes(enclose({"ok": True}, Controls(True, True), subject, KEY))
    )
    (tmp_path / "arguments.json").write_text('{"a": 1.0}')
    (tmp_path / "key.pub").write_text(KEY.public.to_pem())
    (tmp_path / "other.pub").write_text(OTHER.public.to_pem())
    return tmp_path


def checked(*arguments: str, cwd: Path, stdin: bytes = b"") -> tuple[int, Any]:
    finished = run("envelope", "check", *arguments, cwd=cwd, stdin=stdin)
    return finished.code, json.loads(finished.out)


def test_a_sound_envelope_is_0_and_the_answer_says_what_was_seen(folder: Path) -> None:
    code, verdict = checked("envelope.json", cwd=folder)
    assert (code, verdict["sound"], verdict["findings"]) == (0, True, [])
    assert verdict["notes"][0] == 'content not available, so not compared: "arguments"'
    everything = ("--artifact", "arguments=arguments.json", "--key", "key.pub")
    assert checked("envelope.json", *everything, cwd=folder) == (
        0,
        {"sound": True, "findings": [], "notes": [f"signed by {KEY.key_id}"]},
    )


def test_standard_input_is_read_for_a_dash(folder: Path) -> None:
    code, verdict = checked("-", "--json", cwd=folder, stdin=json_bytes(wrap(1)))
    assert (code, verdict) == (0, {"sound": True, "findings": [], "notes": ["not signed"]})


def test_an_altered_envelope_is_1_and_the_answer_says_where(folder: Path) -> None:
    altered = (folder / "envelope.json").read_bytes().replace(b'{"ok":true}', b'{"ok":null}')
    code, verdict = checked("-", cwd=folder, stdin=altered)
    assert (code, verdict["sound"]) == (1, False)
    assert verdict["findings"] == [
        {
            "pointer": "/provenance/integrity/signature/value",
            "check": "signature",
            "message": "does not match this envelope, which was altered",
        },
        {
            "pointer": "/provenance/outputs/0/digest/value",
            "check": "digest",
            "message": "does not match the content",
        },
    ]


@pytest.mark.parametrize(
    ("options", "check"),
    [
        (("--key", "other.pub"), "signature"),
        (("--artifact", "arguments=key.pub"), "digest"),
        (("--artifact", "nobody=key.pub"), "artifact"),
    ],
)
def test_what_the_reader_brings_counts(options: tuple[str, ...], check: str, folder: Path) -> None:
    code, verdict = checked("envelope.json", *options, cwd=folder)
    assert (code, [finding["check"] for finding in verdict["findings"]]) == (1, [check])


def test_what_is_no_envelope_is_1(folder: Path) -> None:
    assert checked("arguments.json", cwd=folder)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("gone.json",), "gone.json: No such file or directory"),
        (("key.pub",), "key.pub: "),
        (("-",), "standard input: the text is empty"),
        (("envelope.json", "--artifact", "arguments"), "write it as ID=FILE"),
        (("envelope.json", "--artifact", "arguments=gone"), "gone: No such file or directory"),
        (("envelope.json", "--key", "arguments.json"), "arguments.json: expected one PEM block"),
        (("envelope.json", "--key", "binary"), "binary: not a PEM file"),
        ((), "missing argument 'FILE'"),
    ],
)
def test_what_cannot_be_checked_is_2(arguments: tuple[str, ...], said: str, folder: Path) -> None:
    (folder / "binary").write_bytes(b"\xff")
    finished = run("envelope", "check", *arguments, cwd=folder)
    assert (finished.code, finished.out) == (2, b"")
    assert said in finished.err


def test_a_person_at_a_terminal_gets_words(folder: Path) -> None:
    def shown(*arguments: str) -> str:
        controller, terminal = os.openpty()
        subprocess.run(
            [*PORTBOOK, "envelope", "check", *arguments],
            stdout=terminal,
            cwd=folder,
            env=environment(NO_COLOR="1"),
        )
        os.close(terminal)
        text = os.read(controller, 65536).decode().replace("\r\n", "\n")
        os.close(controller)
        return text

    assert shown("envelope.json", "--key", "key.pub") == (
        f'sound\n  content not available, so not compared: "arguments"\n  signed by {KEY.key_id}\n'
    )
    assert shown("arguments.json").startswith('not sound\n  (root): missing property "result"\n')
