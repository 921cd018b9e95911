"""Measurements of speed: `scripts/bench`. Described in docs/reference/benchmarks.md."""
