"""Wire contracts, one module each: recognise a message, read it, write its outcome. Pure: no I/O."""
