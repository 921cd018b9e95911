"""Executors: run the tools."""
