"""What a running tool can say of its call, and ask of its caller: `Context`, handed out by type hint.

Asking works in every revision of MCP. Where client and server keep a connection, the question goes out and
the tool waits. Where they do not, the call ends with the question, and the tool is run again, from its
start, once the answer is there: so ask first, and act afterwards.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Literal

from portbook.errors import Failed, Reason
from portbook.model import JSON, Client, JSONObject, Report
from portbook.tools.questions import Answered, Form, OpenPage, Question, Roots, Sample, Sampled

__all__ = ["Context", "calling", "reporting"]

# Set around a call whose sender asked for progress; worker threads and tasks inherit it.
reporting: ContextVar[Report | None] = ContextVar("portbook_reporting", default=None)

# Set around a call whose sender can be talked to.
calling: ContextVar[Client | None] = ContextVar("portbook_calling", default=None)

Level = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


class Context:
    """The call that a tool runs for. A parameter of this type gets it; callers do not see that parameter."""

    __slots__ = ("_asked", "_client", "_report")

    def __init__(self) -> None:
        self._report = reporting.get()
        self._client = calling.get()
        self._asked = 0

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the tool has come; does nothing where the caller did not ask.

        May be called from any thread.
        """
        if self._report is not None:
            self._report(progress, total, message)

    def log(self, level: Level, data: JSON, logger: str | None = None) -> None:
        """Tell the caller something for its log; does nothing where it does not want to hear of that level.

        May be called from any thread.
        """
        if self._client is not None:
            self._client.log(level, data, logger)

    def supports(self, capability: str) -> bool:
        """Return whether the client said that it can do something: `elicitation`, `sampling`, `roots`."""
        return self._client is not None and capability in self._client.capabilities

    def require(self, capability: str) -> None:
        """Return if the client can do something.

        Raises `Failed` where it cannot: the caller is told what it would have to declare.
        """
        if not self.supports(capability):
            raise Failed(
                Reason.MISSING_CAPABILITY, details={"requiredCapabilities": {capability: {}}}
            ) from None

    async def ask(self, **questions: Question) -> dict[str, Any]:
        """Return the answers to several questions, asked at once, each under its own name.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        if self._client is None:
            raise Failed(Reason.NO_ANSWER, note="asked where nobody can answer")
        answers = await self._client.ask(
            {name: each.request() for name, each in questions.items()},
            lambda name, answer: questions[name].read(answer) is not None,
        )
        return {name: each.read(answers[name]) for name, each in questions.items()}

    async def elicit(self, message: str, schema: JSONObject | None = None) -> Answered:
        """Ask the person behind the client to fill in a form.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return await self._ask_one(Form(message) if schema is None else Form(message, schema))

    async def open_page(self, message: str, url: str) -> Answered:
        """Ask the person behind the client to open a page.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return await self._ask_one(OpenPage(message, url))

    async def sample(self, prompt: str, *, max_tokens: int = 1000, system: str | None = None) -> Sampled:
        """Ask the client's model.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return await self._ask_one(Sample(prompt, max_tokens, system))

    async def roots(self) -> list[JSONObject]:
        """Ask which folders and files the client works in.

        Raises `Failed` where the client cannot be asked, or does not answer.
        """
        return await self._ask_one(Roots())

    def detach(self) -> None:
        """Go on as a task, where the client knows those: it is told now, and fetches the result later."""
        if self._client is not None:
            self._client.detach()

    def let_go(self) -> None:
        """Close the stream that the client waits on; it comes back for the answer, where it can."""
        if self._client is not None:
            self._client.let_go()

    async def _ask_one(self, question: Question) -> Any:
        self._asked += 1  # the same tool asks the same things in the same order, each time it is run
        name = f"question_{self._asked}"
        return (await self.ask(**{name: question}))[name]
