"""Settings of shipping that cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from portbook.app.shipping_from_settings import ship_target_of
from portbook.settings import BadSettings, load_settings


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ('ship = "otlp"', "3:1: audit.ship needs audit.ship_to"),
        ('ship_to = "udp://a"', "3:1: audit.ship_to has no effect without audit.ship"),
        ('ship = "postgresql"', "3:1: audit.ship needs store.url"),
        ('ship = "postgresql"\nship_to = "udp://a"', "4:1: audit.ship_to has no effect"),
        ('ship = "syslog"\nship_to = "https://a"', "4:1: audit.ship_to is no such address; write it as udp"),
        ('ship = "otlp"\nship_to = "udp://a"', "4:1: audit.ship_to is no such address; write it as https"),
        (
            'ship = "syslog"\nship_to = "udp://a"\nship_authorization = "TOKEN"',
            "5:1: audit.ship_authorization has no effect: syslog",
        ),
        (
            'ship = "otlp"\nship_to = "https://a/v1/logs"\nship_authorization = "MISSING"',
            "5:1: audit.ship_authorization names a variable that is not set",
        ),
        ('ship = "mail"', "3:1: audit.ship must be"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, lines: str, sentence: str) -> None:
    (tmp_path / "portbook.toml").write_text(f"\n[audit]\n{lines}\n")
    with pytest.raises(BadSettings) as caught:
        ship_target_of(load_settings(None, {}, {}, tmp_path), {"TOKEN": "Bearer x"})
    assert str(caught.value).startswith(f"portbook.toml:{sentence}")


def test_without_it_nothing_is_shipped(tmp_path: Path) -> None:
    assert ship_target_of(load_settings(None, {}, {}, tmp_path), {}) is None
