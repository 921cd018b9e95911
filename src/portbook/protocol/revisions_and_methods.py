"""Two tables: how the revisions of MCP differ, and their methods with their definitions. Pure: no I/O.

Each trait that a revision has or lacks is a row, so that no other module compares dates. A new revision adds
a row or changes a date of a method, never a branch. A test derives the same table of methods from the
official schemas and compares the two.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from portbook.text.named_tuple import NamedTuple
from portbook.text.slotted import slotted

__all__ = [
    "HANDSHAKE_REVISIONS",
    "MAY_ASK",
    "METHODS",
    "NEWEST_HANDSHAKE",
    "REVISIONS",
    "STATELESS_REVISIONS",
    "Method",
    "Revision",
    "Sender",
    "method_of",
]


@slotted(eq=False)
class Revision:
    """One revision of the protocol."""

    name: str
    has_handshake: bool
    """A connection begins with `initialize`; otherwise each request names its revision."""
    has_batches: bool
    """A JSON array of messages is accepted, as this revision requires."""
    has_annotations: bool
    """Tools have annotations about their effect."""
    has_completions: bool
    """Servers declare whether they complete arguments; before, clients had to try."""
    has_completion_context: bool
    """A request to complete an argument has the arguments that were given before it."""
    has_audio: bool
    """Content may be audio."""
    has_titles: bool
    """Listed entries may have a title."""
    has_listing_meta: bool
    """Listed entries may have a `_meta`."""
    has_resource_links: bool
    """Content may be a link to a resource."""
    has_structured_content: bool
    """Tools have an `outputSchema`, results a `structuredContent`."""
    wants_objects: bool
    """Output schema and structured content must be objects; other values are wrapped as `{"result": …}`."""
    may_omit_id: bool
    """An error whose request is unknown has no id; before, its id is null, as in JSON-RPC."""
    has_whole_definitions: bool
    """A method's definition includes the JSON-RPC envelope."""
    has_icons: bool
    """Listed entries may have icons."""
    primes_streams: bool
    """A stream begins with an empty event that has an id to resume from."""
    has_task_requests: bool
    """A client asks for a task by its call, and waits for the task's result with a request of its own."""
    has_result_type: bool
    """Results have a type, and how long they may be cached."""


_NAMES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
_TRAITS: Final = {
    #                         2024-11 2025-03 2025-06 2025-11 2026-07
    "has_handshake":          (True,  True,   True,   True,   False),
    "has_batches":            (False, True,   False,  False,  False),
    "has_annotations":        (False, True,   True,   True,   True),
    "has_completions":        (False, True,   True,   True,   True),
    "has_completion_context": (False, False,  True,   True,   True),
    "has_audio":              (False, True,   True,   True,   True),
    "has_titles":             (False, False,  True,   True,   True),
    "has_listing_meta":       (False, False,  True,   True,   True),
    "has_resource_links":     (False, False,  True,   True,   True),
    "has_structured_content": (False, False,  True,   True,   True),
    "wants_objects":          (False, False,  True,   True,   False),
    "may_omit_id":            (False, False,  False,  True,   True),
    "has_whole_definitions":  (False, False,  False,  True,   True),
    "has_icons":              (False, False,  False,  True,   True),
    "primes_streams":         (False, False,  False,  True,   False),
    "has_task_requests":      (False, False,  False,  True,   False),
    "has_result_type":        (False, False,  False,  False,  True),
}  # fmt: skip
_TABLE: Final = tuple(
    Revision(name=name, **{trait: values[at] for trait, values in _TRAITS.items()})
    for at, name in enumerate(_NAMES)
)

REVISIONS: Final = {revision.name: revision for revision in _TABLE}
HANDSHAKE_REVISIONS: Final = tuple(revision.name for revision in _TABLE if revision.has_handshake)
STATELESS_REVISIONS: Final = tuple(revision.name for revision in _TABLE if not revision.has_handshake)
NEWEST_HANDSHAKE: Final = REVISIONS[HANDSHAKE_REVISIONS[-1]]


# The methods.


class Sender(Enum):
    """The side that may send a method."""

    CLIENT = "client"
    SERVER = "server"
    BOTH = "both"


class Method(NamedTuple):
    """A method in a range of revisions."""

    name: str
    sender: Sender
    definition: str
    """The definition of the request or notification."""
    result: str | None
    """The definition of its result; a notification has none."""
    first: str
    """The first revision that has it in this form."""
    last: str
    """The last revision that has it in this form."""

    @property
    def is_notification(self) -> bool:
        """Return whether it is a notification."""
        return self.result is None


_OLD, _MAR, _JUN, _NOV, _NEW = "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
_C, _S, _B = Sender.CLIENT, Sender.SERVER, Sender.BOTH

METHODS: Final = (
    # Requests of the handshake era.
    Method("initialize", _C, "InitializeRequest", "InitializeResult", _OLD, _NOV),
    Method("ping", _B, "PingRequest", "EmptyResult", _OLD, _NOV),
    Method("logging/setLevel", _C, "SetLevelRequest", "EmptyResult", _OLD, _NOV),
    Method("resources/subscribe", _C, "SubscribeRequest", "EmptyResult", _OLD, _NOV),
    Method("resources/unsubscribe", _C, "UnsubscribeRequest", "EmptyResult", _OLD, _NOV),
    # Requests of every revision.
    Method("completion/complete", _C, "CompleteRequest", "CompleteResult", _OLD, _NEW),
    Method("prompts/get", _C, "GetPromptRequest", "GetPromptResult", _OLD, _NEW),
    Method("prompts/list", _C, "ListPromptsRequest", "ListPromptsResult", _OLD, _NEW),
    Method("resources/list", _C, "ListResourcesRequest", "ListResourcesResult", _OLD, _NEW),
    Method("resources/read", _C, "ReadResourceRequest", "ReadResourceResult", _OLD, _NEW),
    Method(
        "resources/templates/list",
        _C,
        "ListResourceTemplatesRequest",
        "ListResourceTemplatesResult",
        _OLD,
        _NEW,
    ),
    Method("tools/call", _C, "CallToolRequest", "CallToolResult", _OLD, _NEW),
    Method("tools/list", _C, "ListToolsRequest", "ListToolsResult", _OLD, _NEW),
    # Requests that servers send; from 2026-07-28 on they are sent inside results instead.
    Method("roots/list", _S, "ListRootsRequest", "ListRootsResult", _OLD, _NEW),
    Method("sampling/createMessage", _S, "CreateMessageRequest", "CreateMessageResult", _OLD, _NEW),
    Method("elicitation/create", _S, "ElicitRequest", "ElicitResult", _JUN, _NEW),
    # Tasks, as 2025-11-25 had them.
    Method("tasks/get", _B, "GetTaskRequest", "GetTaskResult", _NOV, _NOV),
    Method("tasks/result", _B, "GetTaskPayloadRequest", "GetTaskPayloadResult", _NOV, _NOV),
    Method("tasks/list", _B, "ListTasksRequest", "ListTasksResult", _NOV, _NOV),
    Method("tasks/cancel", _B, "CancelTaskRequest", "CancelTaskResult", _NOV, _NOV),
    # Requests of 2026-07-28.
    Method("server/discover", _C, "DiscoverRequest", "DiscoverResult", _NEW, _NEW),
    Method("subscriptions/listen", _C, "SubscriptionsListenRequest", "SubscriptionsListenResult", _NEW, _NEW),
    # Notifications.
    Method("notifications/cancelled", _B, "CancelledNotification", None, _OLD, _NEW),
    Method("notifications/progress", _B, "ProgressNotification", None, _OLD, _NOV),
    Method("notifications/progress", _S, "ProgressNotification", None, _NEW, _NEW),
    Method("notifications/initialized", _C, "InitializedNotification", None, _OLD, _NOV),
    Method("notifications/roots/list_changed", _C, "RootsListChangedNotification", None, _OLD, _NOV),
    Method("notifications/message", _S, "LoggingMessageNotification", None, _OLD, _NEW),
    Method("notifications/prompts/list_changed", _S, "PromptListChangedNotification", None, _OLD, _NEW),
    Method("notifications/resources/list_changed", _S, "ResourceListChangedNotification", None, _OLD, _NEW),
    Method("notifications/resources/updated", _S, "ResourceUpdatedNotification", None, _OLD, _NEW),
    Method("notifications/tools/list_changed", _S, "ToolListChangedNotification", None, _OLD, _NEW),
    Method("notifications/elicitation/complete", _S, "ElicitationCompleteNotification", None, _NOV, _NOV),
    Method("notifications/tasks/status", _B, "TaskStatusNotification", None, _NOV, _NOV),
    Method(
        "notifications/subscriptions/acknowledged",
        _S,
        "SubscriptionsAcknowledgedNotification",
        None,
        _NEW,
        _NEW,
    ),
)

_BY_NAME: Final[dict[str, tuple[Method, ...]]] = {
    name: tuple(method for method in METHODS if method.name == name)
    for name in {method.name for method in METHODS}
}

# Only these methods may answer that they need input (2026-07-28).
MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})


def method_of(name: str, revision: str) -> Method | None:
    """Return the method of this name in `revision`, or None where that revision has none."""
    # Revisions are dates, so their names sort by time.
    return next(
        (method for method in _BY_NAME.get(name, ()) if method.first <= revision <= method.last), None
    )
