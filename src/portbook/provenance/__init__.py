"""Where a result comes from: artifacts and their digests, evidence, methods, records, signatures."""
