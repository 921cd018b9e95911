"""Bar charts as SVG, made by hand: readable on light and dark pages, without a script or a font to fetch."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

__all__ = ["Bar", "bar_chart"]

_WIDTH: Final = 720
_NAMES: Final = 250
_VALUES: Final = 110
_ROW: Final = 28
_TOP: Final = 40
_STYLE: Final = """\
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:15px}
.bar{fill:#8c959f}
.ours{fill:#0969da}
.spread{stroke:#1f2328;stroke-opacity:.6}
@media(prefers-color-scheme:dark){
text{fill:#e6edf3}
.bar{fill:#6e7681}
.ours{fill:#4493f8}
.spread{stroke:#e6edf3}
}"""


class Bar(NamedTuple):
    """One bar: its name, its length with the range around it, and whether it is Portbook's."""

    name: str
    value: float
    low: float
    high: float
    is_ours: bool
    label: str


def bar_chart(title: str, bars: Sequence[Bar]) -> str:
    """Return a chart of horizontal bars, with a line from the lowest to the highest run."""
    longest = max((bar.high for bar in bars), default=1.0) or 1.0
    room = _WIDTH - _NAMES - _VALUES
    rows = [_row(bar, number, room / longest) for number, bar in enumerate(bars)]
    height = _TOP + _ROW * len(bars) + 8
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            f'<text class="title" x="8" y="22">{escape(title)}</text>',
            *rows,
            "</svg>",
            "",
        ]
    )


def _row(bar: Bar, number: int, scale: float) -> str:
    top, middle = _TOP + number * _ROW, _TOP + number * _ROW + 11
    kind = "bar ours" if bar.is_ours else "bar"
    low, high = _NAMES + bar.low * scale, _NAMES + bar.high * scale
    return (
        f'<text x="{_NAMES - 8}" y="{top + 16}" text-anchor="end">{escape(bar.name)}</text>'
        f'<rect class="{kind}" x="{_NAMES}" y="{top}" width="{max(bar.value * scale, 1):.1f}" height="22"/>'
        f'<line class="spread" x1="{low:.1f}" y1="{middle}" x2="{high:.1f}" y2="{middle}"/>'
        f'<text x="{max(high, _NAMES + bar.value * scale) + 8:.1f}" y="{top + 16}">{escape(bar.label)}</text>'
    )
