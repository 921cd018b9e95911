"""The function that both programs call. Imports nothing, so that the bare one stays bare."""

__all__ = ["echo"]


def echo(text: str) -> dict[str, str]:
    """Return what it was given."""
    return {"text": text}
