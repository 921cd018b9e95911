"""Calls that may continue as tasks: answered when they end, or when the tool detaches, whichever is first."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import cast

from portbook.errors import Ending, Failed, Reason, Refused
from portbook.mcp.exchange import McpExchange
from portbook.mcp.questions_to_client import LiveClient
from portbook.mcp.report_queue import run_on
from portbook.mcp.task_board import Task, TaskBoard
from portbook.model import JSON, Completed
from portbook.pipeline import Pipeline
from portbook.text.named_tuple import NamedTuple
from portbook.wire.parsing import parse

__all__ = ["TaskRunner"]


class TaskRunner(NamedTuple):
    """Runs such calls: through the pipeline, with results in MCP's form, and tasks on the board."""

    pipeline: Pipeline
    tasks: TaskBoard

    async def run(self, exchange: McpExchange, bound: str) -> Completed | Task:
        """Return how a call ended, or the task that it continues as, `bound` to its caller."""
        loop = asyncio.get_running_loop()
        client = exchange.client()
        assert client is not None
        assert not isinstance(client, LiveClient)
        detached: asyncio.Future[Task] = loop.create_future()

        def detach() -> None:
            if client.task is None and not running.done():
                client.task = self.tasks.make(bound)
                detached.set_result(client.task)

        client.on_detach = partial(run_on, loop, detach)
        running = loop.create_task(self.pipeline.run(exchange))
        try:
            await asyncio.wait((running, detached), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await asyncio.sleep(0)  # a call that ends without waiting gets a plain answer
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait((running,))
            raise
        except GeneratorExit:  # it was cancelled before its task took the next step, and is closed
            running.cancel()
            raise
        finally:
            client.on_detach = None  # an abandoned thread makes no task of a call that has ended
        task = client.task
        if running.done() and (task is None or not exchange.wants_task):
            if task is not None:
                self.tasks.drop(task)
            return running.result()
        assert task is not None
        task.running = loop.create_task(self._follow(task, exchange, running))
        return task

    async def _follow(self, task: Task, exchange: McpExchange, running: asyncio.Task[Completed]) -> None:
        """Set the ending of a task when its call ends."""
        try:
            completed = await running
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait((running,))  # until it is recorded
            task.end("cancelled", {})
            raise
        outcome = completed.outcome
        # A task whose server answered with an error of the protocol has failed, too: it is no result.
        is_error = isinstance(outcome, Ending) and "upstream_code" in outcome.details
        told = None if is_error else exchange.told(outcome)
        if told is not None:
            try:
                result = parse(told)
            except Refused:  # nested more deeply than the parser allows
                outcome = Failed(Reason.BAD_RESULT)
            else:
                is_failed = exchange.wants_task and isinstance(result, dict) and result.get("isError") is True
                task.end("failed" if is_failed else "completed", {"result": result})
                return
        assert isinstance(outcome, Ending)
        task.end("failed", {"error": cast("JSON", exchange.error_of(outcome))}, outcome)
