"""The version, alone in its file so that the build and `portbook --version` read nothing else."""

__version__ = "0.1.0"
