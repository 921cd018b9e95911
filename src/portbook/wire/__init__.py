"""Bytes to JSON and back: framing, parsing, JSON-RPC. Pure: no I/O."""
