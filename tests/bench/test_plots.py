from __future__ import annotations

from xml.etree import ElementTree as ET

from bench.plots import Bar, bar_chart

SVG = "{http://www.w3.org/2000/svg}"


def test_bars_are_as_long_as_their_values() -> None:
    chart = bar_chart(
        "A <title>", [Bar("one & only", 50, 40, 100, True, "50"), Bar("b", 25, 25, 25, False, "")]
    )
    root = ET.fromstring(chart)
    bars = root.findall(f"{SVG}rect")
    assert [bar.get("class") for bar in bars] == ["bar ours", "bar"]
    widths = [float(bar.get("width", 0)) for bar in bars]
    assert widths[0] == 2 * widths[1]
    right = max(float(text.get("x", 0)) for text in root.findall(f"{SVG}text"))
    assert right < 720


def test_a_chart_is_readable_on_dark_pages() -> None:
    assert "prefers-color-scheme:dark" in bar_chart("Empty", [])
