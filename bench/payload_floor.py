"""What a payload costs at least: parse, validate both ways, serialise, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import jsonschema_rs
import orjson

from bench.wire import frames

__all__ = ["payload_floor_us"]

_TIMES: Final = 7
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "string"}}},
    "required": ["items"],
    "additionalProperties": False,
}


def payload_floor_us(items: Sequence[str]) -> float:
    """Return the processor time of one call with these items, the best of several."""
    validator = jsonschema_rs.validator_for(_SCHEMA)
    frame = frames("mcp", "echo_items", [1], items=items)[0]
    taken: list[float] = []
    for _ in range(_TIMES):
        before = time.process_time()
        _answer(frame, validator)
        taken.append(time.process_time() - before)
    return min(taken) * 1e6


def _answer(frame: bytes, validator: Any) -> bytes:
    message = orjson.loads(frame)
    arguments = message["params"]["arguments"]
    assert validator.is_valid(arguments)
    result = {"items": arguments["items"]}
    assert validator.is_valid(result)
    content = [{"type": "text", "text": orjson.dumps(result).decode()}]
    answer = {"content": content, "structuredContent": result}
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer})
