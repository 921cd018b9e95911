"""Tools that ship with Portbook."""
