"""`Toolset`: declares Python functions as tools, resources and prompts.

    toolset = Toolset("orders")

    @toolset.tool(effect="read")
    def get_order(order_id: str) -> Order: ...

    @toolset.resource("orders://{order_id}", mime_type="application/json")
    def order_text(order_id: str) -> str: ...

    @toolset.prompt
    def complain(order_id: str) -> str: ...

The label is for people and never prefixes a name. Schemas are generated when the tools are served, not when
the decorator runs, so that type hints may refer to types defined further down in the file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, overload

from portbook.model import JSONObject, Kind
from portbook.text.named_tuple import NamedTuple
from portbook.tools.mistake_place import CallPlace
from portbook.tools.spec import BadTool, Complete, Effect, Switch, TaskUse, ToolSpec, require_name
from portbook.tools.tool_metadata import hints_of, require_options, shown_of
from portbook.tools.uri_templates import UriTemplate

__all__ = ["Changed", "Toolset"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Changed(NamedTuple):
    """A change to notify clients of: a list has changed, or the resource at `uri` has."""

    kind: Kind
    uri: str | None = None


class _Declared(NamedTuple):
    function: Callable[..., Any]
    options: dict[str, Any]


class Toolset:
    """A named set of functions to be served."""

    def __init__(self, label: str) -> None:
        require_options("Toolset", label=label)
        self.label = label
        self._declared: dict[str, _Declared] = {}
        self._resources: dict[str, _Declared] = {}
        self._prompts: dict[str, _Declared] = {}
        self._skills: list[tuple[Path, CallPlace | None]] = []
        self._switches: dict[tuple[Kind, str], Switch] = {}
        self._watchers: list[Callable[[Changed], None]] = []
        self._turning = threading.Lock()

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
        title: str | None = None,
        icons: Sequence[JSONObject] = (),
        annotations: JSONObject | None = None,
        input_schema: JSONObject | None = None,
        task: TaskUse = "never",
        detach: bool = True,
        tags: Collection[str] = (),
        meta: JSONObject | None = None,
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
        title: str | None = None,
        icons: Sequence[JSONObject] = (),
        annotations: JSONObject | None = None,
        input_schema: JSONObject | None = None,
        task: TaskUse = "never",
        detach: bool = True,
        tags: Collection[str] = (),
        meta: JSONObject | None = None,
    ) -> _F | Callable[[_F], _F]:
        """Declare a function as a tool, and return it unchanged.

        `name`, `description` and `title` appear in listings. The defaults are the function's own name, its
        docstring, and no title. A name has 1 to 128 characters of A-Z, a-z, 0-9, `_`, `-` and `.`. Policy,
        keys and records use the canonical name, which `portbook tools` shows; a name of a-z, 0-9, `_` and `.`
        is canonical already.

        `effect` is `"read"`, `"write"` or `"destructive"`; without it, the tool counts as one that writes.
        Policy decides by it, and clients see it as `readOnlyHint` and `destructiveHint`. `annotations` holds
        the other hints of MCP: `{"idempotentHint": True, "openWorldHint": False}`. Each of the `icons` is
        like `{"src": "https://example.com/x.png", "mimeType": "image/png"}`, and may have `sizes` and a
        `theme`.

        A plain function runs in a worker thread, where its deadline of `timeout_ms` (by default the setting
        `execution.timeout_ms`) holds even if it hangs. `inline=True` runs it on the event loop, with no
        deadline: only for quick, pure functions.

        `input_schema` replaces the schema generated from the type hints; the function then receives its
        arguments by name, unconverted. `task` is `"never"`, `"optional"` or `"required"`: whether a call
        runs as a task where the client supports tasks. It does from the start, or with `detach=False` from
        the point where the function calls `context.detach()`.

        `tags` group tools: `portbook tools --tree` shows them so, and rules of a policy match them. `meta` is
        the `_meta` of the tool in listings, where clients also find the tags, as `portbook/tags`. Its keys
        have a prefix of your own: `{"example.com/team": "orders"}`.

        Raises `BadTool` where an option is not valid.
        """
        _require_function(function, "tool")

        def declare(target: _F) -> _F:
            require_options(
                f"tool {name if isinstance(name, str) else getattr(target, '__name__', '')!r}",
                name=name,
                description=description,
                inline=inline,
                timeout_ms=timeout_ms,
                title=title,
                icons=icons,
                annotations=annotations,
                input_schema=input_schema,
                detach=detach,
            )
            tool_name = require_name(name if name is not None else getattr(target, "__name__", ""))
            what = f"tool {tool_name!r}"
            if isinstance(target, type):
                raise BadTool(f"{what}: a tool is a function, not a class; declare a function")
            if tool_name in self._declared:
                raise BadTool(f"{what} is declared twice in this toolset; rename one with name=...")
            if effect is not None and effect not in tuple(Effect):
                raise BadTool(f"{what}: effect must be one of {', '.join(Effect)}")
            if task not in get_args(TaskUse):
                raise BadTool(f"{what}: task must be one of {', '.join(get_args(TaskUse))}")
            tool_tags, tool_meta = _tags_and_meta(what, tags, meta)
            options: dict[str, Any] = {
                "description": description,
                "effect": Effect(effect or Effect.WRITE),
                "is_effect_declared": effect is not None,
                "is_inline": inline,
                "timeout_ms": timeout_ms,
                "shown": {**shown_of(what, title=title, icons=icons), **tool_meta},
                "tags": tool_tags,
                "hints": hints_of(what, annotations),
                "given_schema": input_schema,
                "task": task,
                "detaches": detach,
                "switch": self._switch("tool", tool_name),
            }
            self._declared[tool_name] = _Declared(target, options)
            return target

        return declare if function is None else declare(function)

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        title: str | None = None,
        icons: Sequence[JSONObject] = (),
        annotations: JSONObject | None = None,
        complete: Mapping[str, Complete] | None = None,
        timeout_ms: int | None = None,
        cache_ms: int = 0,
    ) -> Callable[[_F], _F]:
        """Declare a function that reads a resource; `{name}` in its `uri` is a parameter of the function.

        It returns text, bytes, or a list of `Blob`; any other value is written as JSON. Where no resource
        exists at an address, it raises `NotFound` or returns None.

        `name`, `description` and `title` appear in listings. The defaults are the function's own name, its
        docstring, and no title. `mime_type` is the media type of the returned value. `icons` are as for a
        tool. `annotations` are MCP's for resources: `{"audience": ["user"], "priority": 0.5,
        "lastModified": "2026-01-02T12:00:00Z"}`.

        `complete` suggests values for the template's variables, by name: a list of strings, or a function
        that returns one from the text typed so far. `timeout_ms` is the deadline. Clients may cache the
        resource for `cache_ms`; 0 means that they read it again each time.

        Raises `BadTool` where an option is not valid.
        """
        if not isinstance(uri, str):  # pyright: ignore[reportUnnecessaryIsInstance] - @toolset.resource alone
            raise BadTool("@toolset.resource needs an address: @toolset.resource('notes://all')")
        template, what = UriTemplate(uri), f"resource {uri!r}"
        require_options(
            what,
            name=name,
            description=description,
            mime_type=mime_type,
            title=title,
            icons=icons,
            annotations=annotations,
            complete=complete,
            timeout_ms=timeout_ms,
            cache_ms=cache_ms,
        )

        def declare(target: _F) -> _F:
            if uri in self._resources:
                raise BadTool(f"{what} is declared twice in this toolset; drop one")
            self._resources[uri] = _Declared(
                target,
                {
                    "names": template.names,
                    "description": description,
                    "shown": shown_of(
                        what,
                        name=name or getattr(target, "__name__", uri),
                        title=title,
                        mimeType=mime_type,
                        icons=icons,
                        annotations=annotations,
                    ),
                    "complete": dict(complete or {}),
                    "timeout_ms": timeout_ms,
                    "cache_ms": cache_ms,
                    "switch": self._switch("resource", uri),
                },
            )
            return target

        return declare

    @overload
    def prompt(self, function: _F) -> _F: ...
    @overload
    def prompt(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        title: str | None = None,
        icons: Sequence[JSONObject] = (),
        complete: Mapping[str, Complete] | None = None,
        timeout_ms: int | None = None,
    ) -> Callable[[_F], _F]: ...
    def prompt(
        self,
        function: _F | None = None,
        *,
        name: str | None = None,
        description: str | None = None,
        title: str | None = None,
        icons: Sequence[JSONObject] = (),
        complete: Mapping[str, Complete] | None = None,
        timeout_ms: int | None = None,
    ) -> _F | Callable[[_F], _F]:
        """Declare a function that returns a prompt; its parameters are strings.

        It returns text, content, a `Message`, or a list of them.

        `name`, `description` and `title` appear in listings. The defaults are the function's own name, its
        docstring, and no title. `icons` are as for a tool. `complete` suggests values for its arguments, by
        name, as for a resource. `timeout_ms` is the deadline.

        Raises `BadTool` where an option is not valid.
        """
        _require_function(function, "prompt")

        def declare(target: _F) -> _F:
            prompt_name = name if name is not None else getattr(target, "__name__", "")
            what = f"prompt {prompt_name!r}"
            require_options(
                what,
                name=name,
                description=description,
                title=title,
                icons=icons,
                complete=complete,
                timeout_ms=timeout_ms,
            )
            if not 0 < len(prompt_name) <= 128 or not prompt_name.isprintable():
                raise BadTool(f"prompt name {prompt_name[:40]!r}: use 1 to 128 printable characters")
            if prompt_name in self._prompts:
                raise BadTool(f"{what} is declared twice in this toolset; rename one")
            self._prompts[prompt_name] = _Declared(
                target,
                {
                    "description": description,
                    "shown": shown_of(what, title=title, icons=icons),
                    "complete": dict(complete or {}),
                    "timeout_ms": timeout_ms,
                    "switch": self._switch("prompt", prompt_name),
                },
            )
            return target

        return declare if function is None else declare(function)

    def skills(self, folder: str | Path) -> None:
        """Serve the Agent Skills of a `folder`: each subfolder that has a `SKILL.md` is one."""
        import inspect  # late, here and below: few toolsets have skills

        require_options("toolset.skills", folder=folder)
        here = inspect.currentframe()
        self._skills.append((Path(folder), CallPlace.of(None if here is None else here.f_back)))

    def enable(self, name: str, kind: Kind = "tool") -> None:
        """Serve a disabled tool, resource or prompt again, by `name` and `kind`, and notify clients."""
        self._turn(kind, name, on=True)

    def disable(self, name: str, kind: Kind = "tool") -> None:
        """Stop serving a tool, resource or prompt, by `name` and `kind`, and notify clients.

        Until `enable` is called, it is as if it did not exist. A `kind` is `"tool"`, `"resource"` (its name
        is the URI as declared) or `"prompt"`.
        """
        self._turn(kind, name, on=False)

    def updated(self, uri: str) -> None:
        """Notify clients that are subscribed to the resource at `uri` that it changed. Thread-safe."""
        self._tell(Changed("resource", uri))

    def watch(self, watcher: Callable[[Changed], None]) -> Callable[[], None]:
        """Call `watcher` with every change, in the thread that makes it; return a function to stop that."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def _switch(self, kind: Kind, name: str) -> Switch:
        return self._switches.setdefault((kind, name), Switch())

    def _turn(self, kind: Kind, name: str, *, on: bool) -> None:
        if (kind, name) not in self._switches:
            raise BadTool(f"{kind} {name!r}: not in this toolset")
        with self._turning:
            switch = self._switches[kind, name]
            has_changed, switch.is_on = switch.is_on != on, on
        if has_changed:
            self._tell(Changed(kind))

    def _tell(self, changed: Changed) -> None:
        for watcher in tuple(self._watchers):
            watcher(changed)

    def specs(self) -> list[ToolSpec]:
        """Return the declared specs, with schemas generated from type hints.

        Raises `BadTool` where a function's signature does not fit the kind it was declared as.
        """
        # Late, here and below: a toolset is declared in many places and served in few.
        from portbook.tools.functions import spec_from_function

        specs = [
            spec_from_function(name, target, **options) for name, (target, options) in self._declared.items()
        ]
        if self._resources or self._prompts:
            from portbook.tools.resource_prompt_and_completion_functions import (
                specs_from_prompt,
                specs_from_resource,
            )

            for uri, (target, options) in self._resources.items():
                specs.extend(specs_from_resource(uri, target, **options))
            for name, (target, options) in self._prompts.items():
                specs.extend(specs_from_prompt(name, target, **options))
        if self._skills:
            from portbook.tools.skill_folder import specs_from_skills

            for folder, place in self._skills:
                specs.extend(specs_from_skills(folder, place))
        return specs


def _tags_and_meta(what: str, tags: Any, meta: Any) -> tuple[tuple[str, ...], JSONObject]:
    """Return the tags of a tool, and its `_meta` under that name.

    Raises `BadTool` where one of them is not valid.
    """
    if tags == () and meta is None:
        return (), {}
    from portbook.tools.tool_metadata import (  # late: most tools have neither
        meta_of,
        tags_of,
    )

    valid = tags_of(what, tags)
    return valid, meta_of(what, meta, valid)


def _require_function(function: Any, decorator: str) -> None:
    if function is not None and not callable(function):
        raise BadTool(
            f"@toolset.{decorator}({function!r}): the decorator takes a function; "
            f"set the name with @toolset.{decorator}(name=...)"
        )
