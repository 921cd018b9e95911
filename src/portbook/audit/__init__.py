"""Records of calls: their content, their hash chain, and their files."""
