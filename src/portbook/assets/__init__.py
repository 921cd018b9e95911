"""Schemas, examples and assets: a library, a validator, a differ, and the tools for them."""
