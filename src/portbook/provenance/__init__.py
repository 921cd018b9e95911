"""Provenance of results: artifacts and digests, evidence, methods, records, signatures."""
