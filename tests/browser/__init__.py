"""A package, so that its files share fixtures, which end with the last of them."""
