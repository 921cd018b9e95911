"""Tools that Portbook brings along."""
