"""Measurements of speed: `python -m bench`. Described in docs/reference/benchmarks.md."""
