"""What the scenarios of the official conformance suite call, written with the public interface alone."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from portbook import (
    Audio,
    Content,
    Context,
    Embedded,
    Form,
    Image,
    Message,
    Roots,
    Sample,
    Text,
    ToolError,
    Toolset,
)

toolset = Toolset("conformance")
toolset.skills(Path(__file__).parent / "skills")

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SILENCE = base64.b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")

NAME = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
OK = {"properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


# -- content


@toolset.tool(effect="read", inline=True)
def test_simple_text() -> list[Content]:
    """Return a text."""
    return [Text("This is a simple text response for testing.")]


@toolset.tool(effect="read", inline=True)
def test_image_content() -> Image:
    """Return a picture."""
    return Image(PIXEL)


@toolset.tool(effect="read", inline=True)
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(SILENCE)


@toolset.tool(effect="read", inline=True)
def test_embedded_resource() -> Embedded:
    """Return a resource with what is in it."""
    return Embedded("test://embedded-resource", "This is an embedded resource content.", "text/plain")


@toolset.tool(effect="read", inline=True)
def test_multiple_content_types() -> list[Content]:
    """Return a text, a picture and a resource."""
    return [
        Text("Multiple content types test:"),
        Image(PIXEL),
        Embedded("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
    ]


@toolset.tool(effect="read", inline=True)
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@toolset.tool(effect="read", inline=True, input_schema=SCHEMA)
def json_schema_2020_12_tool(**arguments: Any) -> dict[str, Any]:
    """Take arguments under a schema of JSON Schema 2020-12, and return them."""
    return arguments


@toolset.tool(effect="read", inline=True)
def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that has to be in a header too."""
    return region


# -- while it runs


@toolset.tool(effect="read")
async def test_tool_with_progress(context: Context) -> str:
    """Report progress."""
    for done in (0, 50, 100):
        context.progress(done, 100)
        await asyncio.sleep(0.05)
    return "Progress test completed"


@toolset.tool(effect="read")
async def test_tool_with_logging(context: Context) -> str:
    """Write to the client's log."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log("info", text)
        await asyncio.sleep(0.05)
    return "Logging test completed"


@toolset.tool(effect="read")
def test_logging_tool(context: Context) -> str:
    """Write to the client's log once, if it wants that."""
    context.log("info", "Logged once")
    return "Logged"


@toolset.tool(effect="read")
async def test_reconnection(context: Context) -> str:
    """Close the stream in the middle of the call; the answer is for whoever comes back."""
    context.let_go()
    await asyncio.sleep(0.3)
    return "Reconnection test completed"


# -- asking


@toolset.tool(effect="read")
async def test_sampling(prompt: str, context: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {(await context.sample(prompt, max_tokens=100)).text}"


@toolset.tool(effect="read")
async def test_elicitation(message: str, context: Context) -> str:
    """Ask the person behind the client."""
    answer = await context.elicit(
        message,
        {
            "properties": {
                "username": {"type": "string", "description": "User's response"},
                "email": {"type": "string", "description": "User's email address"},
            },
            "required": ["username", "email"],
        },
    )
    return f"User response: action={answer.action}, content={answer.content}"


@toolset.tool(effect="read")
async def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Ask with defaults."""
    answer = await context.elicit(
        "Please review and update the form fields with defaults",
        {
            "properties": {
                "name": {"type": "string", "default": "John Doe"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "status": {
                    "type": "string",
                    "enum": ["active", "inactive", "pending"],
                    "default": "active",
                },
                "verified": {"type": "boolean", "default": True},
            },
        },
    )
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@toolset.tool(effect="read")
async def test_elicitation_sep1330_enums(context: Context) -> str:
    """Ask with every form of choice."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{ordinal} Option"}
        for n, ordinal in enumerate(("First", "Second", "Third"), 1)
    ]
    answer = await context.elicit(
        "Please select options from the enum fields",
        {
            "properties": {
                "untitledSingle": {"type": "string", "enum": options},
                "titledSingle": {"type": "string", "oneOf": titled},
                "legacyEnum": {
                    "type": "string",
                    "enum": ["opt1", "opt2", "opt3"],
                    "enumNames": ["Option One", "Option Two", "Option Three"],
                },
                "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
                "titledMulti": {"type": "array", "items": {"anyOf": titled}},
            },
        },
    )
    return f"Elicitation completed: action={answer.action}, content={answer.content}"


@toolset.tool(effect="read")
def test_missing_capability(context: Context) -> str:
    """Need a model, and say so where there is none."""
    context.require("sampling")
    return "Sampling is there"


@toolset.tool(effect="read")
async def test_streaming_elicitation(context: Context) -> str:
    """Ask, after having reported progress."""
    context.progress(1, 2)
    return str((await context.elicit("Shall it go on?", OK)).content)


@toolset.tool(effect="read")
async def test_input_required_result_elicitation(context: Context) -> str:
    """Ask for a name."""
    answers = await context.ask(user_name=Form("What is your name?", NAME))
    return f"Hello, {answers['user_name'].content.get('name')}!"


@toolset.tool(effect="read")
async def test_input_required_result_sampling(context: Context) -> str:
    """Ask a model."""
    answers = await context.ask(capital_question=Sample("What is the capital of France?", 100))
    return answers["capital_question"].text


@toolset.tool(effect="read")
async def test_input_required_result_list_roots(context: Context) -> str:
    """Ask for the client's roots."""
    answers = await context.ask(client_roots=Roots())
    return ", ".join(str(root["uri"]) for root in answers["client_roots"])


@toolset.tool(effect="read")
async def test_input_required_result_request_state(context: Context) -> str:
    """Ask, and see that the state came back."""
    answers = await context.ask(confirm=Form("Please confirm", OK))
    return f"state-ok: {answers['confirm'].action}"


@toolset.tool(effect="read")
async def test_input_required_result_tampered_state(context: Context) -> str:
    """Ask, with a state that cannot be changed."""
    answers = await context.ask(confirm=Form("Please confirm", OK))
    return f"state-ok: {answers['confirm'].action}"


@toolset.tool(effect="read")
async def test_input_required_result_multiple_inputs(context: Context) -> str:
    """Ask three things at once."""
    answers = await context.ask(
        user_name=Form("What is your name?", NAME),
        greeting=Sample("Generate a greeting", 50),
        client_roots=Roots(),
    )
    name = answers["user_name"].content.get("name")
    return f"{answers['greeting'].text} {name}, {len(answers['client_roots'])} roots"


@toolset.tool(effect="read")
async def test_input_required_result_multi_round(context: Context) -> str:
    """Ask one thing after the other."""
    first = await context.ask(step1=Form("Step 1: What is your name?", NAME))
    color = {"properties": {"color": {"type": "string"}}, "required": ["color"]}
    second = await context.ask(step2=Form("Step 2: What is your favorite color?", color))
    return f"{first['step1'].content['name']} likes {second['step2'].content['color']}"


@toolset.tool(effect="read")
async def test_input_required_result_capabilities(context: Context) -> str:
    """Ask only what the client can answer."""
    questions: dict[str, Any] = {}
    if context.supports("elicitation"):
        questions["user_name"] = Form("What is your name?", NAME)
    if context.supports("sampling"):
        questions["greeting"] = Sample("Generate a greeting", 50)
    return f"{len(await context.ask(**questions))} answers"


# -- lists that change


@toolset.tool(effect="read", inline=True)
def now_and_then() -> str:
    """Be there at times."""
    return "here"


@toolset.prompt
def now_and_then_prompt() -> str:
    """Be there at times."""
    return "Here."


@toolset.tool(effect="write", inline=True)
def test_trigger_tool_change() -> str:
    """Change the list of tools, and change it back."""
    toolset.disable("now_and_then")
    toolset.enable("now_and_then")
    return "changed"


@toolset.tool(effect="write", inline=True)
def test_trigger_prompt_change() -> str:
    """Change the list of prompts, and change it back."""
    toolset.disable("now_and_then_prompt", "prompt")
    toolset.enable("now_and_then_prompt", "prompt")
    return "changed"


@toolset.tool(effect="write", inline=True)
def touch_watched_resource() -> str:
    """Say that the watched resource holds something else now."""
    toolset.updated("test://watched-resource")
    return "touched"


# -- tasks


@toolset.tool(effect="read", inline=True)
def greet(name: str) -> list[Content]:
    """Greet, at once."""
    return [Text(f"Hello, {name}!")]


@toolset.tool(effect="read", task="optional", timeout_ms=120_000)
async def slow_compute(seconds: float, label: str) -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"{label}: computed for {seconds} seconds"


@toolset.tool(effect="read", task="required")
async def failing_job() -> str:
    """Fail, after a while."""
    await asyncio.sleep(1)
    raise RuntimeError("the job failed")


@toolset.tool(effect="read", task="optional")
async def protocol_error_job() -> int:
    """Break its own promise, after a while."""
    await asyncio.sleep(0.3)
    return "not a number"  # type: ignore[return-value]


@toolset.tool(effect="destructive", task="optional")
async def confirm_delete(filename: str, context: Context) -> str:
    """Ask before it deletes."""
    schema = {"properties": {"confirm": {"type": "boolean"}}, "required": ["confirm"]}
    answer = await context.elicit(f"Delete {filename}?", schema)
    return f"deleted {filename}" if answer.content.get("confirm") else "kept"


@toolset.tool(effect="read", task="optional")
async def multi_input(context: Context) -> str:
    """Ask two things at once."""
    answers = await context.ask(first=Form("First name?", NAME), second=Form("Second name?", NAME))
    return " and ".join(str(answer.content["name"]) for answer in answers.values())


@toolset.tool(effect="read", task="required", detach=False)
async def test_tool_with_task(context: Context) -> str:
    """Ask first, then go on as a task."""
    answers = await context.ask(user_name=Form("What is your name?", NAME))
    context.detach()
    await asyncio.sleep(0.3)
    return f"Computed for {answers['user_name'].content['name']}"


# -- resources


@toolset.resource("test://static-text", name="static text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@toolset.resource("test://static-binary", name="static binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that never changes."""
    return PIXEL


@toolset.resource("test://watched-resource", name="watched", mime_type="text/plain")
def watched() -> str:
    """A text that may change."""
    return "Watch me."


@toolset.resource("test://template/{id}/data", name="template", mime_type="application/json")
def template(id: str) -> dict[str, Any]:
    """Data for an id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# -- prompts


@toolset.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@toolset.prompt(complete={"arg1": ["test", "testing", "tester"], "arg2": lambda value: [value.upper()]})
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@toolset.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:  # noqa: N803 - as the suite has it
    """A prompt with a resource."""
    return [
        Message(Embedded(resourceUri, "Embedded resource content for testing.", "text/plain")),
        Message("Please process the embedded resource above."),
    ]


@toolset.prompt
def test_prompt_with_image() -> list[Message]:
    """A prompt with a picture."""
    return [Message(Image(PIXEL)), Message("Please analyze the image above.")]


@toolset.prompt
async def test_input_required_result_prompt(context: Context) -> str:
    """A prompt that asks."""
    schema = {"properties": {"context": {"type": "string"}}, "required": ["context"]}
    answers = await context.ask(user_context=Form("What context should the prompt use?", schema))
    return f"Use this context: {answers['user_context'].content['context']}"
