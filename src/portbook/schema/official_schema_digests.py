"""The official MCP schemas that the build embeds: one row per revision, each pinned to its bytes.

The build hook reads it before the package can be imported, so it imports nothing from Portbook.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["LICENCE", "PINS", "SOURCE", "Pin"]

# The pinned build requirement that carries the schemas and their licence, byte for byte.
SOURCE: Final = "mcp-fuzzer==0.7.0"


class Pin(NamedTuple):
    """The size and digest that a file must have; its checksum tells sooner that it is damaged."""

    size: int
    crc32: int
    sha256: str


PINS: Final = {
    "2024-11-05": Pin(87877, 0x250E3954, "61cea2392d4f284092d09bc84b9ac488c0d5618ac2b38a56942fc5b99fd960ce"),
    "2025-03-26": Pin(89428, 0x83D14092, "e720669548c8100a4282c49e580efd6ddf7f28899ea786fc8db251dbdb356131"),
    "2025-06-18": Pin(108234, 0xE800E5D1, "af845e7e5b9d27107d1690f0936022546177a1403e63ffb11470135b296a2e01"),
    "2025-11-25": Pin(174323, 0x845D9A95, "268a5f82ba70fd7e4b6dc4aa1e64f116f74b4d0edcb69dc046829c79dd4e97e7"),
    "2026-07-28": Pin(181474, 0x5E4B370A, "ef70b61f99b6d2e5e3b46863822eab08dff6a45bedc7a08914e0e5b133f40203"),
}

LICENCE: Final = Pin(12227, 0xCD0F91F1, "0382b0057770ca05e9c350a50aa3b1c1fea84da0bc81d723bf00b9aa841be58a")
