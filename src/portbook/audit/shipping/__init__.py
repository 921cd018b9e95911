"""Ships records to a receiver, from the files that they are written to."""
