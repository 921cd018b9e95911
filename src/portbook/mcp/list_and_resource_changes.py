"""Changes of lists and resources: delivers list_changed and resource-updated notifications to subscribers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from portbook.mcp.notifications_to_client import Notifications
from portbook.model import JSON, JSONObject, Kind
from portbook.protocol.revisions_and_methods import Revision
from portbook.tools.toolset import Changed

__all__ = ["ChangeFeed", "ChangeNotification"]

_UPDATED: Final = "notifications/resources/updated"

# The notification for each kind of list.
_LISTS: Final[dict[Kind, str]] = {
    "tool": "notifications/tools/list_changed",
    "prompt": "notifications/prompts/list_changed",
    "resource": "notifications/resources/list_changed",
}


class ChangeNotification:
    """The notification of one change, for all subscribers: checked and written once per revision."""

    __slots__ = ("_checked", "_made", "changed")

    def __init__(self, changed: Changed) -> None:
        self.changed = changed
        self._checked: set[str] = set()
        self._made: dict[tuple[str, type, JSON], bytes] = {}

    def message(self, notifications: Notifications, revision: Revision, subscription: JSON = None) -> bytes:
        """Return the notification, with the id of the subscription that it goes to, if any.

        Raises `SchemaViolation` where the revision does not allow it.
        """
        key = (revision.name, type(subscription), subscription)  # 1 and 1.0 are written differently
        made = self._made.get(key)
        if made is None:
            method, params = self._told()
            # Only the ids differ, and they were checked on arrival.
            is_known = revision.name in self._checked and subscription is not None
            made = (
                notifications.tagged(method, params, subscription)
                if is_known
                else notifications.notification(method, params, revision, subscription)
            )
            self._checked.add(revision.name)
            self._made[key] = made
        return made

    def _told(self) -> tuple[str, JSONObject]:
        kind, uri = self.changed
        return (_LISTS[kind], {}) if uri is None else (_UPDATED, {"uri": uri})


Notify = Callable[[ChangeNotification], None]
Close = Callable[[], None]


class ChangeFeed:
    """Passes changes on to all subscribers. Safe to use from any thread."""

    def __init__(self) -> None:
        # Dictionaries, because there may be many, and any of them may be removed first.
        self._subscribers: dict[object, Notify] = {}
        self._closers: dict[object, Close] = {}
        self._changing = threading.Lock()
        self.relay: Callable[[Changed], bool] | None = None
        """Tells all nodes of a change, this one included, where several share a store."""
        self.is_closed = False

    def subscribe(self, notify: Notify) -> Close:
        """Call `notify` with every change; return the function that unsubscribes."""
        return self._add(self._subscribers, notify)

    def on_close(self, close: Close) -> Close:
        """Call `close` when the server ends; return the function that unregisters it."""
        if self.is_closed:
            close()
        return self._add(self._closers, close)

    def publish(self, changed: Changed) -> None:
        """Notify all subscribers, on every node."""
        if self.relay is None or not self.relay(changed):
            self.deliver(changed)

    def deliver(self, changed: Changed) -> None:
        """Notify all subscribers of this node."""
        with self._changing:
            subscribers = tuple(self._subscribers.values())
        change = ChangeNotification(changed)
        for notify in subscribers:
            notify(change)

    def close(self) -> None:
        """Close every subscription."""
        self.is_closed = True
        with self._changing:
            closers = tuple(self._closers.values())
        for close in closers:
            close()

    def _add(self, those: dict[object, Callable[..., None]], one: Callable[..., None]) -> Close:
        key = object()  # the same function may be registered twice
        with self._changing:
            those[key] = one

        def forget() -> None:
            with self._changing:
                those.pop(key, None)

        return forget
