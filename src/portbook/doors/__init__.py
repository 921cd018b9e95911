"""Doors: transports that move bytes to the boundary and back; of tools and policy they know nothing."""
