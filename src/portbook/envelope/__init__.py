"""`mcp.envelope.v0.1`: results in envelopes, what is asked of them, and whether one holds what it says."""
