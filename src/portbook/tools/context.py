"""`Context`: lets a running tool report progress, log, and ask its caller. Injected by type hint.

Asking works in every revision of MCP. Where client and server keep a connection, the question is sent and
the tool waits. Where they do not, the call ends with the question, and the tool runs again from its start
once the answer has arrived: so ask first, and act afterwards.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextvars import ContextVar
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from portbook.canonical import json_bytes, tight_copy
from portbook.errors import Failed, Reason
from portbook.model import JSON, Draft, JSONObject, Run

if TYPE_CHECKING:
    from portbook.tools.questions import Answered, Question, Sampled

__all__ = ["Context", "Said", "leaves_questions", "running"]

# Set for the duration of a call; worker threads and tasks inherit it.
running: ContextVar[Run | None] = ContextVar("portbook_running", default=None)

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

_T = TypeVar("_T")


class Said:
    """The result of a report. Awaiting it lets other calls run, and waits for a client that reads slowly."""

    __slots__ = ("_room",)

    def __init__(self, room: Callable[[], Awaitable[None]] | None = None) -> None:
        self._room = room

    def __await__(self) -> Iterator[Any]:
        return iter(()) if self._room is None else self._room().__await__()


class Context:
    """The call that a tool runs for, passed to a parameter of this type; callers do not see the parameter.

    In your own tests, `Context()` has no client: progress and logs are dropped, and questions fail.
    """

    __slots__ = ("_asked", "_client", "_questions", "_report", "_run", "_said")

    def __init__(self) -> None:
        self._run = run = running.get()
        self._report = None if run is None else run.report
        self._client = client = None if run is None else run.reach()
        self._said = Said() if client is None else Said(client.room)
        self._asked = 0
        self._questions: list[Coroutine[Any, Any, Any]] = []

    @property
    def request_id(self) -> str | None:
        """The `requestId` in the record of this call; None outside of a call."""
        return None if self._run is None else self._run.identity.request

    @property
    def session_id(self) -> str | None:
        """The session named by the caller or by its transport; None where there is none."""
        return None if self._run is None else self._run.session

    @property
    def caller(self) -> str | None:
        """The name of the caller, by its key: `anonymous` without one; None outside of a call.

        It is for what a tool answers, such as the caller's own orders. What a caller may do is for keys and
        policy to decide: a name that a tool checks itself is in no record.
        """
        return None if self._run is None else self._run.caller

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Said:
        """Report progress to the caller: `progress` of a `total`, with a `message`.

        Does nothing where the caller did not ask for progress. Thread-safe. Awaiting it is optional, and lets
        other calls run; in a thread, it may wait a moment for a caller that reads slowly.

        Raises `TypeError` where `progress` or `total` is not a finite number, or `message` not a string.
        """
        if self._report is not None:
            _require_number(progress)
            if total is not None:
                _require_number(total)
            if not isinstance(message, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] - untyped
                raise TypeError("the message of a progress report must be a string")
            self._report(progress, total, message)
        return self._said

    def log(self, level: Level, data: JSON, logger: str | None = None) -> Said:
        """Send the caller a log message: `data`, at a `level`, with the name of a `logger`.

        Does nothing where the caller did not ask for that level. The levels are `debug`, `info`, `notice`,
        `warning`, `error`, `critical`, `alert` and `emergency`. Thread-safe, and awaited as `progress` is.

        Raises `ValueError` where the level is none of these, or the caller asked for it and JSON cannot hold
        the `data`.
        """
        if self._client is not None and self._client.hears(level):
            body = tight_copy(json_bytes(data))  # as it is now: the tool may change it before it is sent
            self._client.log(level, Draft(len(body), partial(json.loads, body)), logger)
        return self._said

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Said:
        """Report progress: an alias of `progress`, with the same `progress`, `total` and `message`."""
        return self.progress(progress, total, message)

    def debug(self, data: JSON, logger: str | None = None) -> Said:
        """Log at `debug`, with the `data` and `logger` of `log`."""
        return self.log("debug", data, logger)

    def info(self, data: JSON, logger: str | None = None) -> Said:
        """Log at `info`, with the `data` and `logger` of `log`."""
        return self.log("info", data, logger)

    def warning(self, data: JSON, logger: str | None = None) -> Said:
        """Log at `warning`, with the `data` and `logger` of `log`."""
        return self.log("warning", data, logger)

    def error(self, data: JSON, logger: str | None = None) -> Said:
        """Log at `error`, with the `data` and `logger` of `log`; the call continues."""
        return self.log("error", data, logger)

    def supports(self, capability: str) -> bool:
        """Return whether the client declared a `capability`: `elicitation`, `sampling` or `roots`."""
        return self._client is not None and capability in self._client.capabilities

    def require(self, capability: str) -> None:
        """Require that the client declared a `capability`, one of those that `supports` takes.

        Raises `Failed` where it did not; the error names the capability to declare.
        """
        if not self.supports(capability):
            raise Failed(
                Reason.MISSING_CAPABILITY, details={"requiredCapabilities": {capability: {}}}
            ) from None

    def ask(self, **questions: Question) -> Coroutine[Any, Any, dict[str, Any]]:
        """Ask several `questions` at once and return the answers under the same names; await it.

        Raises `Failed` where the client cannot be asked or does not answer.
        """
        return self._noted(self._answers(questions))

    def elicit(
        self, message: str, schema: Any = None, *, response_type: Any = None
    ) -> Coroutine[Any, Any, Answered]:
        """Ask the client's user to fill in a form, with a `message` above it; await it.

        `schema` describes the form: a JSON Schema of flat properties, or a type. A pydantic model, a
        dataclass or a TypedDict is filled in field by field; a plain type, such as `bool` or a `Literal`,
        is one field, named `value`. The `content` of the answer is then an instance of that type.
        `response_type` is an alias of `schema`.

        Raises `Failed` where the client cannot be asked or does not answer, and `TypeError` where the type
        cannot be shown as a form.
        """
        from portbook.tools.questions import Form  # late, here and below: few tools ask

        asked = schema if response_type is None else response_type
        return self._noted(self._answer(Form(message) if asked is None else Form(message, asked)))

    def open_page(self, message: str, url: str) -> Coroutine[Any, Any, Answered]:
        """Ask the client's user to open the page at `url`, with the reason in a `message`; await it.

        Raises `Failed` where the client cannot be asked or does not answer.
        """
        from portbook.tools.questions import OpenPage

        return self._noted(self._answer(OpenPage(message, url)))

    def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str | None = None
    ) -> Coroutine[Any, Any, Sampled]:
        """Ask the client's model a `prompt`, for at most `max_tokens`, with a `system` prompt; await it.

        Raises `Failed` where the client cannot be asked or does not answer.
        """
        from portbook.tools.questions import Sample

        return self._noted(self._answer(Sample(prompt, max_tokens, system)))

    def roots(self) -> Coroutine[Any, Any, list[JSONObject]]:
        """Ask which folders and files the client works in; await it.

        Raises `Failed` where the client cannot be asked or does not answer.
        """
        from portbook.tools.questions import Roots

        return self._noted(self._answer(Roots()))

    def detach(self) -> None:
        """Continue as a task where the client supports tasks: it gets a task now and the result later."""
        if self._client is not None:
            self._client.detach()

    def let_go(self) -> None:
        """Close the stream that the client waits on; a client that can resume fetches the answer later."""
        if self._client is not None:
            self._client.let_go()

    def _noted(self, question: Coroutine[Any, Any, _T]) -> Coroutine[Any, Any, _T]:
        self._questions.append(question)
        return question

    def _answer(self, question: Question) -> Coroutine[Any, Any, Any]:
        self._asked += 1  # a tool asks the same questions in the same order each time it runs
        return self._only(f"question_{self._asked}", question)

    async def _only(self, name: str, question: Question) -> Any:
        return (await self._answers({name: question}))[name]

    async def _answers(self, questions: dict[str, Question]) -> dict[str, Any]:
        if self._client is None:
            raise Failed(Reason.NO_ANSWER, note="asked where no client can answer")
        answers = await self._client.ask(
            {name: each.request() for name, each in questions.items()},
            lambda name, answer: questions[name].read(answer) is not None,
        )
        return {name: each.read(answers[name]) for name, each in questions.items()}


def _require_number(value: float) -> None:
    # A bool is an int to Python, and a subclass of a number is none to JSON.
    if type(value) not in (int, float) or not (type(value) is int or isfinite(value)):
        raise TypeError("progress and total must be finite numbers")


def leaves_questions(context: Context) -> bool:
    """Return whether a finished tool left a question that it never awaited, and drop such questions.

    Such a question was never sent, and the tool used a coroutine as the answer.
    """
    noted = context._questions  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - hidden from tools
    left = [each for each in noted if inspect.getcoroutinestate(each) == inspect.CORO_CREATED]
    for each in left:
        each.close()
    noted.clear()
    return bool(left)
