"""`ComposedRequests`: composes the requests of calls, large ones in a thread.

A form with files is decoded, copied and searched for its boundary: at 64 MiB that takes a third of a second.
A list of 100,000 numbers in a query takes longer. Meanwhile, the event loop serves other calls. What all such
requests hold in memory together is bounded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from portbook.apis.bodies.body_writer import NamedFile
from portbook.apis.gateway import Gateway
from portbook.apis.request_composer import Composed, Composer
from portbook.apis.unsendable import unsendable
from portbook.executors.memory_room import MemoryRoom
from portbook.executors.upload_folder import UploadFolder
from portbook.model import JSON, JSONObject
from portbook.tools.operation import HttpOperation

__all__ = ["ComposedRequests"]

# Composed within a few milliseconds; a step on the event loop may take 50.
_QUICK_BYTES: Final = 256 * 1024
# What an item of a list, or a member of an object, costs beside its text: it may be a part of a form.
_ITEM_BYTES: Final = 128
# Of all large requests at once: four of the largest that a common API takes.
_ROOM_BYTES: Final = 256 * 1024 * 1024


class ComposedRequests:
    """The requests of all operations, as they are needed."""

    __slots__ = ("_composers", "_gateways", "_room")

    def __init__(self, gateways: Mapping[str, Gateway], room: MemoryRoom | None = None) -> None:
        self._gateways = gateways
        self._composers: dict[str, Composer] = {}
        self._room = room or MemoryRoom(_ROOM_BYTES)

    def at_once(self, name: str, operation: HttpOperation, arguments: JSONObject) -> Composed | None:
        """Return the request of the tool `name` for `arguments`, or None where `of` has to compose it.

        Raises `Refused` where the arguments cannot be sent.
        """
        composer = self._composers.get(name)
        if composer is None or composer.operation is not operation:
            composer = self._composer(name, operation)
        if composer.takes_files:
            return None
        size = _ITEM_BYTES * len(arguments)
        for argument, value in arguments.items():
            # Most arguments are strings, and to measure these needs no list of what is still to be measured.
            size += len(argument) + (len(value) if isinstance(value, str) else _size(value))
        return composer.compose(arguments) if size <= _QUICK_BYTES else None

    @asynccontextmanager
    async def of(
        self, name: str, operation: HttpOperation, arguments: JSONObject
    ) -> AsyncGenerator[Composed]:
        """Give the request of the tool `name` for `arguments`; its memory counts until it was sent.

        Raises `Refused` where the arguments cannot be sent.
        """
        composer = self._composer(name, operation)
        named = composer.files_in(arguments)
        size = _size(arguments)
        if not named and size <= _QUICK_BYTES:
            yield composer.compose(arguments)
            return
        gateway = self._gateways[operation.gateway]
        async with self._room.of(size + (gateway.max_file_bytes if named else 0)) as held:
            files: dict[str, bytes] = {}
            if named:
                files = await held.in_thread(_read, gateway, named)
                held.keep_only(size + sum(len(files[file.path]) for file in named))
            yield await held.in_thread(composer.compose, arguments, files)

    def _composer(self, name: str, operation: HttpOperation) -> Composer:
        composer = self._composers.get(name)
        if composer is None or composer.operation is not operation:
            composer = self._composers[name] = Composer(operation)
        return composer


def _read(gateway: Gateway, named: list[NamedFile]) -> dict[str, bytes]:
    """Return the files that a call names by their paths.

    Raises `Refused` where the operator set no folder, or a file cannot be sent.
    """
    if gateway.files is None:
        raise unsendable(named[0].place, "is a path, and the operator has set no folder for files")
    return UploadFolder(gateway.files, gateway.max_file_bytes).read_all(named)


def _size(value: JSON) -> int:
    """Return about how many bytes a request with this value takes."""
    size = 0
    waiting = [value]
    for each in waiting:  # it grows meanwhile
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, list):
            size += _ITEM_BYTES * len(each)
            waiting.extend(each)
        elif isinstance(each, dict):
            size += _ITEM_BYTES * len(each) + sum(map(len, each))
            waiting.extend(each.values())
    return size
