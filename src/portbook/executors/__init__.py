"""How tools run."""
