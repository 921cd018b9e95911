"""Doors: transports that move bytes to the boundary and back."""
