"""A rule on an argument holds, whatever else pydantic would call that argument.

Every tool takes a file in a type of its own and returns the path that it was given. The rule denies one path.
No name but that of the served schema may bring the path to the function.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import Finished, invoke, run

SECRET = "/etc/shadow"

TYPES = """
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union
from pydantic import AliasChoices, AliasGenerator, AliasPath, BaseModel, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass as checked
from typing_extensions import TypedDict
from portbook import Toolset

toolset = Toolset("files")
BY_NAME = ConfigDict(populate_by_name=True)
"""

SERVED = (
    TYPES
    + """
class ByName(BaseModel):
    model_config = BY_NAME
    path: str = Field("safe", alias="filePath")

class ByNewName(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)
    path: str = Field("safe", validation_alias="filePath")

class Generated(BaseModel):
    model_config = ConfigDict(alias_generator=lambda name: "file" + name.title(), populate_by_name=True)
    path: str = "safe"

class Open(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="allow")
    path: str = Field("safe", alias="filePath")

class NameOnly(BaseModel):
    model_config = ConfigDict(validate_by_name=True, validate_by_alias=False)
    path: str = Field("safe", alias="filePath")

class Renamed(BaseModel):
    filePath: str = "safe"

    @model_validator(mode="before")
    @classmethod
    def from_old_name(cls, data: Any) -> Any:
        return {"filePath": data["path"]} if "path" in data else data

    @property
    def path(self) -> str:
        return self.filePath

class Own(BaseModel):
    filePath: str = "safe"

    def __init__(self, path: str = "safe", **rest: Any) -> None:
        super().__init__(**{"filePath": path, **rest})

    @property
    def path(self) -> str:
        return self.filePath

@checked(config=BY_NAME)
class Checked:
    path: str = Field("safe", alias="filePath")

class Typed(TypedDict, total=False):
    __pydantic_config__ = BY_NAME
    path: Annotated[str, Field(alias="filePath")]

class Other(BaseModel):
    kind: Literal["other"] = "other"
    mode: int

class Tagged(BaseModel):
    model_config = BY_NAME
    kind: Literal["tagged"] = "tagged"
    path: str = Field("safe", alias="filePath")

class Deep(BaseModel):
    inner: list[ByName] = []
    kids: "list[Deep]" = []

@toolset.tool(effect="read")
def by_name(file: ByName) -> str:
    return file.path

@toolset.tool(effect="read")
def by_new_name(file: ByNewName) -> str:
    return file.path

@toolset.tool(effect="read")
def generated(file: Generated) -> str:
    return file.path

@toolset.tool(effect="read")
def open_(file: Open) -> str:
    return file.path

@toolset.tool(effect="read")
def name_only(file: NameOnly) -> str:
    return file.path

@toolset.tool(effect="read")
def renamed(file: Renamed) -> str:
    return file.path

@toolset.tool(effect="read")
def own(file: Own) -> str:
    return file.path

@toolset.tool(effect="read")
def checked_(file: Checked) -> str:
    return file.path

@toolset.tool(effect="read")
def typed(file: Typed) -> str:
    return file.get("path", "safe")

@toolset.tool(effect="read")
def either(file: Other | ByName) -> str:
    return getattr(file, "path", "safe")

@toolset.tool(effect="read")
def first(file: Annotated[Union[ByName, Other], Field(union_mode="left_to_right")]) -> str:
    return getattr(file, "path", "safe")

@toolset.tool(effect="read")
def tagged(file: Annotated[Tagged | Other, Field(discriminator="kind")]) -> str:
    return getattr(file, "path", "safe")

@toolset.tool(effect="read")
def listed(files: list[ByName]) -> str:
    return files[0].path

@toolset.tool(effect="read")
def mapped(files: dict[str, ByName]) -> str:
    return files["a"].path

@toolset.tool(effect="read")
def deep(file: Deep) -> str:
    return file.kids[0].inner[0].path
"""
)

POLICY = f"""
[docs]
enabled = false

[[policy.rules]]
name = "no secrets"
action = "deny"
tools = ["*"]
where = {{ "POINTER" = {{ const = "{SECRET}" }} }}
"""

# The place of the file in the arguments of each tool, and its arguments around a file.
PLACES: dict[str, tuple[str, Any]] = {
    **{
        tool: ("/file", lambda file: {"file": file})
        for tool in (
            *("by_name", "by_new_name", "generated", "open_", "name_only", "renamed", "own", "checked_"),
            *("typed", "either", "first", "tagged"),
        )
    },
    "listed": ("/files/0", lambda file: {"files": [file]}),
    "mapped": ("/files/a", lambda file: {"files": {"a": file}}),
    "deep": ("/file/kids/0/inner/0", lambda file: {"file": {"kids": [{"inner": [file]}]}}),
}


def served(folder: Path, source: str, place: str, *frames: bytes) -> Finished:
    (folder / "tools.py").write_text(source)
    (folder / "portbook.toml").write_text(POLICY.replace("POINTER", f"{place}/filePath"))
    return run("serve", "--stdio", "tools.py", stdin=b"".join(frame + b"\n" for frame in frames), cwd=folder)


@pytest.mark.covers("002.policy.names")
@pytest.mark.parametrize("tool", PLACES)
def test_a_value_reaches_a_tool_under_the_names_of_its_schema_alone(tool: str, tmp_path: Path) -> None:
    place, around = PLACES[tool]
    tag = {"kind": "tagged"} if tool == "tagged" else {}
    frames = [
        invoke(tool, around({**tag, name: path}))
        for name, path in (("filePath", "plain"), ("filePath", SECRET), ("path", SECRET))
    ]
    finished = served(tmp_path, SERVED, place, *frames)
    allowed, denied, sneaked = finished.answers
    assert allowed["result"] == "plain", finished.err
    assert denied["error"]["data"]["reason"] == "POLICY_VIOLATION"
    if tool == "open_":  # further members are welcome there, and never are the field
        assert sneaked["result"] == "safe"
    else:
        # Where the schema names no default, the rule already stops a call without the value.
        refusal = "POLICY_VIOLATION" if tool == "typed" else "BAD_ARGUMENTS"
        assert sneaked["error"]["data"]["reason"] == refusal


@pytest.mark.parametrize(
    ("declared", "named"),
    [
        (
            'class File(BaseModel):\n    path: str = Field("", validation_alias=AliasChoices("a", "b"))',
            "File.path",
        ),
        (
            'class File(BaseModel):\n    path: str = Field("", validation_alias=AliasPath("a", 0))',
            "File.path",
        ),
        (
            (
                "class File(BaseModel):\n"
                "    model_config = ConfigDict(alias_generator=AliasGenerator(\n"
                "        validation_alias=lambda name: AliasChoices(name, name + '2')))\n"
                "    path: str = ''"
            ),
            "File.path",
        ),
        (
            (
                "@dataclass\nclass File:\n"
                '    path: Annotated[str, Field(validation_alias=AliasChoices("a", "b"))] = ""'
            ),
            "File.path",
        ),
        (
            (
                "class File(TypedDict):\n"
                '    path: Annotated[str, Field(validation_alias=AliasChoices("a", "b"))]'
            ),
            "File.path",
        ),
        (
            (
                "class Inner(BaseModel):\n"
                '    path: str = Field("", validation_alias=AliasChoices("a", "b"))\n'
                "class File(BaseModel):\n    inner: dict[str, list[Inner | None]] = {}"
            ),
            "Inner.path",
        ),
        (
            (
                "class File(BaseModel):\n"
                "    model_config = BY_NAME\n"
                '    path: str = Field("", alias="filePath")\n'
                "    def __init__(self, **data: Any) -> None:\n        super().__init__(**data)"
            ),
            "File has its own __init__",
        ),
    ],
)
def test_a_type_with_names_that_its_schema_lacks_is_not_served(
    declared: str, named: str, tmp_path: Path
) -> None:
    tool = '\n\n@toolset.tool(effect="read")\ndef read(file: File) -> str:\n    return "x"\n'
    finished = served(tmp_path, f"{TYPES}\n{declared}{tool}", "/file", invoke("read", {"file": {}}))
    assert (finished.code, finished.out) == (2, b"")
    assert named in finished.err
    assert ": function read: " in finished.err
