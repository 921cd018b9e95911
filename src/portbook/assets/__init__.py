"""Schemas, examples and assets: a library read once, a validator, a differ, and the tools made of them."""
