"""Which secrets settings refer to."""

from __future__ import annotations

from portbook.exports.needed_secrets import NeededSecrets, needed_secrets


def test_each_source_is_named_once_wherever_it_stands() -> None:
    tables = {
        "http": {
            "shop": {
                "base_url": "https://shop.example",
                "auth": {"key": {"env": "SHOP_KEY"}, "login": {"username": "me", "password": {"file": "pw"}}},
            },
            "bank": {"auth": [{"key": {"env": "SHOP_KEY"}}, {"key": {"env": "BANK_KEY"}}]},
        },
        "mcp": {"github": {"command": ["x"], "env": {"TOKEN": {"env": "GITHUB_TOKEN"}, "MODE": "quiet"}}},
    }
    assert needed_secrets(tables) == NeededSecrets(("SHOP_KEY", "BANK_KEY", "GITHUB_TOKEN"), ("pw",))


def test_settings_without_secrets_need_none() -> None:
    assert needed_secrets({"http": {}, "mcp": {"a": {"env": {"FILE": "x"}}}}) == NeededSecrets((), ())
