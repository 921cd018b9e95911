"""`Toolset`: how Python functions become tools.

    toolset = Toolset("orders")

    @toolset.tool(effect="read")
    def get_order(order_id: str) -> Order: ...

The label is for people and never prefixes a name. Schemas are made when the tools are served, not when the
decorator runs, so that type hints may name what stands further down in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar, overload

from portbook.tools.spec import BadTool, Effect, ToolSpec, require_slug

__all__ = ["Toolset"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Toolset:
    """A named set of functions to be served as tools."""

    def __init__(self, label: str) -> None:
        self.label = label
        self._declared: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {}

    @overload
    def tool(self, function: _F) -> _F: ...
    @overload
    def tool(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Literal["read", "write", "destructive"] | None = None,
        inline: bool = False,
        timeout_ms: int | None = None,
    ) -> Callable[[_F], _F]: ...
    def tool(
        self,
        function: _F | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: Literal["read", "write", "destructive"] | None = None,
        inline: bool = False,
        timeout_ms: int | None = None,
    ) -> _F | Callable[[_F], _F]:
        """Declare a function as a tool; it stays the function it was.

        A plain function runs in a worker thread, where its deadline holds even if it hangs. `inline=True`
        runs it on the event loop, with no deadline: only for quick, pure functions. A tool that does not
        declare its effect counts as one that writes.

        Raises `BadTool` for a name, an effect or a deadline that a tool cannot have.
        """

        def declare(target: _F) -> _F:
            tool_name = require_slug(name if name is not None else getattr(target, "__name__", ""))
            if tool_name in self._declared:
                raise BadTool(
                    f"tool {tool_name!r} is declared twice in this toolset; rename one with name=..."
                )
            if effect is not None and effect not in tuple(Effect):
                raise BadTool(f"tool {tool_name!r}: effect must be one of {', '.join(Effect)}")
            if timeout_ms is not None and timeout_ms <= 0:
                raise BadTool(f"tool {tool_name!r}: timeout_ms must be above 0")
            options: dict[str, Any] = {
                "description": description,
                "effect": Effect(effect or Effect.WRITE),
                "is_effect_declared": effect is not None,
                "is_inline": inline,
                "timeout_ms": timeout_ms,
            }
            self._declared[tool_name] = (target, options)
            return target

        return declare if function is None else declare(function)

    def specs(self) -> list[ToolSpec]:
        """Return the declared tools with the schemas that their type hints say.

        Raises `BadTool` where a signature cannot be a tool's.
        """
        from portbook.tools.functions import spec_from_function  # pydantic, only where functions are served

        return [
            spec_from_function(name, target, **options) for name, (target, options) in self._declared.items()
        ]
