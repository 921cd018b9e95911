"""My first toolset: two functions, served as tools."""

from portbook import Toolset

toolset = Toolset("echo")


@toolset.tool(effect="read", inline=True)
def echo(text: str) -> str:
    """Give the text back."""
    return text


@toolset.tool(effect="read", inline=True)
def count(text: str, word: str) -> int:
    """Count how often a word stands in a text."""
    return text.split().count(word)
