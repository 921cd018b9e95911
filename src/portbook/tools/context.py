"""What a running tool can say of its call, and ask of its caller: `Context`, handed out by type hint.

Asking works in every revision of MCP. Where client and server keep a connection, the question goes out and
the tool waits. Where they do not, the call ends with the question, and the tool is run again, from its
start, once the answer is there: so ask first, and act afterwards.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Iterator
from contextvars import ContextVar
from typing import Any, Literal, TypeVar

from portbook.errors import Failed, Reason
from portbook.model import JSON, JSONObject, Run
from portbook.tools.questions import Answered, Form, OpenPage, Question, Roots, Sample, Sampled

__all__ = ["Context", "Said", "leaves_questions", "running"]

# Set around a call, for the tool that runs for it; worker threads and tasks inherit it.
running: ContextVar[Run | None] = ContextVar("portbook_running", default=None)

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]

_T = TypeVar("_T")


class Said:
    """Something that was said already: there is nothing to wait for, and `await` is as good as none."""

    __slots__ = ()

    def __await__(self) -> Iterator[Any]:
        return iter(())


_SAID = Said()


class Context:
    """The call that a tool runs for. A parameter of this type gets it; callers do not see that parameter.

    In your own tests, `Context()` is one that nobody listens to.
    """

    __slots__ = ("_asked", "_client", "_questions", "_report", "_run")

    def __init__(self) -> None:
        self._run = run = running.get()
        self._report = None if run is None else run.report
        self._client = None if run is None else run.client
        self._asked = 0
        self._questions: list[Coroutine[Any, Any, Any]] = []

    @property
    def request_id(self) -> str | None:
        """What the record of this call has as its `requestId`; None outside of a call."""
        return None if self._run is None else self._run.identity.request

    @property
    def session_id(self) -> str | None:
        """The session that the caller named, or its transport; None where there is none."""
        return None if self._run is None else self._run.session

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> Said:
        """Tell the caller how far the tool has come: `progress` of a `total`, and a `message` about it.

        Does nothing where the caller did not ask. May be called from any thread, and awaited or not.
        """
        if self._report is not None:
            self._report(progress, total, message)
        return _SAID

    def log(self, level: Level, data: JSON, logger: str | None = None) -> Said:
        """Tell the caller something for its log: `data`, at a `level`, from a `logger` by some name.

        Does nothing where the caller does not want to hear of that level. The levels are `debug`, `info`,
        `notice`, `warning`, `error`, `critical`, `alert` and `emergency`. May be called from any thread, and
        awaited or not.
        """
        if self._client is not None:
            self._client.log(level, data, logger)
        return _SAID

    def report_progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> Said:
        """Do what `progress` does, with the same `progress`, `total` and `message`."""
        return self.progress(progress, total, message)

    def debug(self, data: JSON, logger: str | None = None) -> Said:
        """Do what `log` does at `debug`, with the same `data` and `logger`."""
        return self.log("debug", data, logger)

    def info(self, data: JSON, logger: str | None = None) -> Said:
        """Do what `log` does at `info`, with the same `data` and `logger`."""
        return self.log("info", data, logger)

    def warning(self, data: JSON, logger: str | None = None) -> Said:
        """Do what `log` does at `warning`, with the same `data` and `logger`."""
        return self.log("warning", data, logger)

    def error(self, data: JSON, logger: str | None = None) -> Said:
        """Do what `log` does at `error`, with the same `data` and `logger`; the call goes on."""
        return self.log("error", data, logger)

    def supports(self, capability: str) -> bool:
        """Return whether the client said that it has a `capability`: `elicitation`, `sampling`, `roots`."""
        return self._client is not None and capability in self._client.capabilities

    def require(self, capability: str) -> None:
        """Return if the client has a `capability`, one of those that `supports` knows.

        Raises `Failed` where it has not: the caller is told what it would have to declare.
        """
        if not self.supports(capability):
            raise Failed(
                Reason.MISSING_CAPABILITY, details={"requiredCapabilities": {capability: {}}}
            ) from None

    def ask(self, **questions: Question) -> Coroutine[Any, Any, dict[str, Any]]:
        """Return the answers to several `questions`, asked at once, each under its own name; await it.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return self._noted(self._answers(questions))

    def elicit(
        self, message: str, schema: Any = None, *, response_type: Any = None
    ) -> Coroutine[Any, Any, Answered]:
        """Ask the person behind the client to fill in a form, with a `message` above it; await it.

        `schema` says what to fill in: a JSON Schema of flat properties, or a type. A pydantic model, a
        dataclass or a TypedDict is filled in field by field; a plain type, such as `bool` or a `Literal`,
        is one field, named `value`. The `content` of what they answer is then one of that type.
        `response_type` is another name for `schema`.

        Raises `Failed` where the client cannot be asked, or does not answer, and `TypeError` for a type that
        is no form.
        """
        asked = schema if response_type is None else response_type
        return self._noted(self._answer(Form(message) if asked is None else Form(message, asked)))

    def open_page(self, message: str, url: str) -> Coroutine[Any, Any, Answered]:
        """Ask the person behind the client to open the page at `url`, and say why in a `message`; await it.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return self._noted(self._answer(OpenPage(message, url)))

    def sample(
        self, prompt: str, *, max_tokens: int = 1000, system: str | None = None
    ) -> Coroutine[Any, Any, Sampled]:
        """Ask the client's model: a `prompt`, at most `max_tokens` back, and a `system` prompt; await it.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return self._noted(self._answer(Sample(prompt, max_tokens, system)))

    def roots(self) -> Coroutine[Any, Any, list[JSONObject]]:
        """Ask which folders and files the client works in; await it.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return self._noted(self._answer(Roots()))

    def detach(self) -> None:
        """Go on as a task, where the client knows those: it is told now, and fetches the result later."""
        if self._client is not None:
            self._client.detach()

    def let_go(self) -> None:
        """Close the stream that the client waits on; it comes back for the answer, where it can."""
        if self._client is not None:
            self._client.let_go()

    def _noted(self, question: Coroutine[Any, Any, _T]) -> Coroutine[Any, Any, _T]:
        self._questions.append(question)
        return question

    def _answer(self, question: Question) -> Coroutine[Any, Any, Any]:
        self._asked += 1  # the same tool asks the same things in the same order, each time it is run
        return self._only(f"question_{self._asked}", question)

    async def _only(self, name: str, question: Question) -> Any:
        return (await self._answers({name: question}))[name]

    async def _answers(self, questions: dict[str, Question]) -> dict[str, Any]:
        if self._client is None:
            raise Failed(Reason.NO_ANSWER, note="asked where nobody can answer")
        answers = await self._client.ask(
            {name: each.request() for name, each in questions.items()},
            lambda name, answer: questions[name].read(answer) is not None,
        )
        return {name: each.read(answers[name]) for name, each in questions.items()}


def leaves_questions(context: Context) -> bool:
    """Return whether a tool that has ended left a question that it never awaited, and drop such questions.

    Nobody was asked then, and the tool took a coroutine for the answer.
    """
    noted = context._questions  # noqa: SLF001 # pyright: ignore[reportPrivateUsage] - no business of a tool's
    left = [each for each in noted if inspect.getcoroutinestate(each) == inspect.CORO_CREATED]
    for each in left:
        each.close()
    noted.clear()
    return bool(left)
