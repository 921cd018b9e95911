"""Take secrets out of a JSON value or a text. Pure: no I/O.

`redactor` walks a value; `names` says which members hold secrets, `places` which pointers do, `detectors`
what looks like one, `pairs` what is called one in a text, `known` where values that must never be seen stand,
however they are written; `gate` is the cheap test that spares all of this for most values.
"""

from __future__ import annotations

from portbook.redaction.redactor import BadRedaction, Mode, Redactor

__all__ = ["BadRedaction", "Mode", "Redactor"]
