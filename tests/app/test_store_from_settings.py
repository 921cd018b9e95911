"""The store that settings name, and addresses that cannot be one."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.app.rules_from_settings import rules_of
from portbook.app.store_from_settings import store_of
from portbook.settings import BadSettings, Settings, load_settings

CANARY = "canary-4711"


def settings_of(folder: Path, **store: str) -> Settings:
    lines = [f'{key} = "{value}"' for key, value in store.items()]
    (folder / "portbook.toml").write_text("\n".join(["[store]", *lines]))
    return load_settings(None, {}, {}, folder)


@pytest.mark.parametrize("key", ["url", "direct_url"])
@pytest.mark.parametrize("password", [f"a/{CANARY}", f"{CANARY}/a", f"a@{CANARY}"])
def test_a_password_that_is_not_encoded_is_told_without_repeating_it(
    tmp_path: Path, key: str, password: str
) -> None:
    named = {"url": "postgresql://db.example/x", key: f"postgresql://ada:{password}@db.example/x"}
    with pytest.raises(BadSettings, match=rf"store\.{key}.*percent-encode the password") as caught:
        store_of(settings_of(tmp_path, **named))
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "url", [f"postgresql://ada:a%2F{CANARY}@h/x", f"postgresql://h/x?password=a/{CANARY}"]
)
def test_the_password_of_the_store_is_taken_out_of_results(tmp_path: Path, url: str) -> None:
    rules = rules_of(settings_of(tmp_path, url=url), [], {}, is_exposed=False)
    assert rules.redactor is not None
    assert rules.redactor.redact({"said": f"a/{CANARY}"}) == ({"said": "[redacted]"}, True)
