"""`python -m mcp`."""

from portbook.cli.adapter import main

main()
