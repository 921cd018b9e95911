"""Wire contracts, one module each: recognize a message, read it, write its outcome. Pure: no I/O."""
