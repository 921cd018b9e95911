"""Who may call, how often, and with whose approval. Pure: no I/O."""
