"""`mcp.envelope.v0.1`: wraps results in envelopes, reads callers' wishes, and verifies envelopes."""
