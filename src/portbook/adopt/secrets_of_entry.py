"""Which values of a client's entry are secrets: variables, arguments, an address. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portbook.redaction.detectors import spans_of_shapes
from portbook.redaction.secret_names import SecretNames
from portbook.text.late_pattern import late_pattern

__all__ = ["has_reference", "is_secret", "may_be_secret", "secrets_in"]

# What only a client fills in: ${VAR}, ${input:id}, {env:VAR}.
_REFERENCE: Final = late_pattern(r"\$\{|\{env:|\{file:|^\$[A-Z_]+$")
_SECRET_FLAG: Final = late_pattern(r"--?(?P<name>[A-Za-z][\w-]*)(?:=(?P<value>.+))?$")
_NAMES: Final = SecretNames(())
# Words, ports and modes are shorter.
_RANDOM: Final = 16


def has_reference(text: str) -> bool:
    """Return whether a text has something in it that only a client fills in."""
    return _REFERENCE.search(text) is not None


def secrets_in(command: tuple[str, ...]) -> Iterator[str]:
    """Yield the arguments that are secrets by their shape, or by the flag before them."""
    for before, each in zip(("", *command), command, strict=False):
        flag, earlier = _SECRET_FLAG.match(each), _SECRET_FLAG.match(before)
        if flag and flag["value"] and is_secret(flag["name"], flag["value"]):
            yield flag["value"]
        elif is_secret("", each) or (
            earlier and not earlier["value"] and flag is None and is_secret(earlier["name"], each)
        ):
            yield each


def is_secret(name: str, value: str) -> bool:
    """Return whether a value is a secret, by its name or by its shape."""
    if has_reference(value):
        return False
    is_named = bool(name) and (
        _NAMES.holds_secret(name, value) or name.casefold().endswith(("_token", "_key", "_pat"))
    )
    return is_named or next(iter(spans_of_shapes(value, "off")), None) is not None


def may_be_secret(name: str, value: str) -> bool:
    """Return whether a value is one to redact: a secret, or long and random enough to be one."""
    is_random = len(value) >= _RANDOM and " " not in value and "/" not in value
    is_mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return is_secret(name, value) or has_reference(value) or (is_random and is_mixed)
