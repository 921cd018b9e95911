"""The name that the asset specification gives Portbook. Everything is in `portbook`."""

from portbook.version import __version__

__all__ = ["__version__"]
