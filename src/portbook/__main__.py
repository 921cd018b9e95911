"""`python -m portbook`."""

from portbook.cli.main import main

main()
