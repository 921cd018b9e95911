"""JSON Schema: what may be compiled, compiled validators, findings in words. Pure: no I/O."""
