"""Redacts secrets in JSON values and text. Pure: no I/O.

`redactor` walks a value. Secrets are found by member name (`secret_names`), by pointer (`pointers`), by shape
(`detectors`), as `name=value` in text (`key_value_text`), and as known values in any encoding
(`known_secrets`). `prefilter` is a cheap test that skips the search for most values.
"""

from __future__ import annotations

from portbook.redaction.redactor import BadRedaction, Mode, Redactor

__all__ = ["BadRedaction", "Mode", "Redactor"]
