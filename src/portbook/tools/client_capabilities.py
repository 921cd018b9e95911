"""Which capabilities a client must declare to be asked something. Pure: no I/O."""

from __future__ import annotations

from typing import Final, cast

from portbook.model import JSON, JSONObject
from portbook.protocol.extensions import TASKS

__all__ = ["known_capabilities", "missing_for"]

# The capability that a client must declare for each method.
_NEEDS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}


# What a client can declare that a server may need, and the parts of each that MCP names.
_KNOWN: Final[dict[str, tuple[str, ...]]] = {
    "elicitation": ("form", "url"),
    "sampling": ("context", "tools"),
    "roots": (),
    "extensions": (TASKS,),
}


def known_capabilities(required: JSON) -> JSONObject:
    """Return what MCP knows of the capabilities that a server requires, and nothing else that it says."""
    if not isinstance(required, dict):
        return {}
    found: JSONObject = {}
    for name in _KNOWN.keys() & required.keys():
        parts = required[name]
        found[name] = {part: {} for part in _KNOWN[name] if isinstance(parts, dict) and part in parts}
    return found


def missing_for(request: JSONObject, capabilities: JSONObject) -> JSONObject | None:
    """Return the capabilities that a client lacks for `request`; None where it has them.

    A client that declares an empty `elicitation` supports forms only.
    """
    name = _NEEDS[cast("str", request["method"])]
    declared = capabilities.get(name)
    params = request.get("params")
    if name != "elicitation":
        return None if isinstance(declared, dict) else {name: {}}
    mode = params.get("mode", "form") if isinstance(params, dict) else "form"
    if isinstance(declared, dict) and (mode in declared or (mode == "form" and not declared)):
        return None
    is_named = mode != "form" or isinstance(declared, dict)
    return {name: {cast("str", mode): {}} if is_named else {}}
