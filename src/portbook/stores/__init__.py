"""What outlives the process: approvals and keys, in one SQLite file."""
