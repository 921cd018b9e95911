"""How often callers may call, and with whose approval. Pure: no I/O."""
