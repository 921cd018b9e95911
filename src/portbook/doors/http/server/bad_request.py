"""BadRequest: bytes that are not a request, or not one that is read here."""

from __future__ import annotations

__all__ = ["BadRequest"]


class BadRequest(Exception):
    """Bytes that are refused; what follows them on the connection is not read as a request."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
